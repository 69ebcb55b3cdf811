package seccomp_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
)

// call is a system call and how it ends below a filter. Their arguments make them harmless where they are not filtered.
type call struct {
	name string
	nr   uintptr
	args []uintptr
	want syscall.Errno
}

const bad = ^uintptr(0) // a descriptor, or a pointer, of nothing

var refusedCalls = []call{
	{"mmap of huge pages", unix.SYS_MMAP, []uintptr{0, 2 << 20, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB, ^uintptr(0)}, unix.ENOMEM},
	{"memfd_create of huge pages", unix.SYS_MEMFD_CREATE, []uintptr{bad, unix.MFD_HUGETLB}, unix.EINVAL},
	{"memfd_create with all flags", unix.SYS_MEMFD_CREATE, []uintptr{bad, bad}, unix.EINVAL}, // as Chromium asks
	{"shmget of huge pages", unix.SYS_SHMGET, []uintptr{0, 2 << 20, 0o4600}, unix.ENOMEM},
	{"ptrace", unix.SYS_PTRACE, []uintptr{bad}, unix.EPERM},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, nil, unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, []uintptr{bad}, unix.EPERM},
	{"kcmp", unix.SYS_KCMP, nil, unix.EPERM},
	{"unshare", unix.SYS_UNSHARE, []uintptr{0}, unix.EPERM},
	{"setns", unix.SYS_SETNS, []uintptr{bad}, unix.EPERM},
	{"mount", unix.SYS_MOUNT, nil, unix.EPERM},
	{"umount2", unix.SYS_UMOUNT2, nil, unix.EPERM},
	{"pivot_root", unix.SYS_PIVOT_ROOT, nil, unix.EPERM},
	{"chroot", unix.SYS_CHROOT, nil, unix.EPERM},
	{"open_tree", unix.SYS_OPEN_TREE, []uintptr{bad}, unix.EPERM},
	{"fsopen", unix.SYS_FSOPEN, nil, unix.EPERM},
	{"statmount", unix.SYS_STATMOUNT, nil, unix.EPERM},
	{"bpf", unix.SYS_BPF, []uintptr{bad}, unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, nil, unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, []uintptr{bad}, unix.EPERM},
	{"keyctl", unix.SYS_KEYCTL, []uintptr{bad}, unix.EPERM},
	{"add_key", unix.SYS_ADD_KEY, nil, unix.EPERM},
	{"init_module", unix.SYS_INIT_MODULE, nil, unix.EPERM},
	{"kexec_load", unix.SYS_KEXEC_LOAD, []uintptr{0, 1 << 30}, unix.EPERM},
	{"reboot", unix.SYS_REBOOT, nil, unix.EPERM},
	{"swapon", unix.SYS_SWAPON, nil, unix.EPERM},
	{"sethostname", unix.SYS_SETHOSTNAME, []uintptr{0, bad}, unix.EPERM},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, nil, unix.EPERM},
	{"adjtimex", unix.SYS_ADJTIMEX, nil, unix.EPERM},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, []uintptr{bad}, unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, []uintptr{bad}, unix.EPERM},
	{"get_mempolicy", unix.SYS_GET_MEMPOLICY, nil, unix.EPERM},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, []uintptr{bad}, unix.EPERM},
	{"memfd_secret", unix.SYS_MEMFD_SECRET, nil, unix.EPERM},
	{"vmsplice", unix.SYS_VMSPLICE, []uintptr{bad}, unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, []uintptr{1}, unix.ENOSYS},
	{"clone3", unix.SYS_CLONE3, nil, unix.ENOSYS},
	{"file_getattr", unix.SYS_FILE_GETATTR, []uintptr{bad}, unix.ENOSYS},
	{"number 1000", 1000, nil, unix.ENOSYS},
	// CLONE_THREAD without CLONE_SIGHAND makes no process.
	{"clone into namespace", unix.SYS_CLONE, []uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}, unix.EPERM},
	{"personality", unix.SYS_PERSONALITY, []uintptr{0x40000}, unix.EPERM},
	{"personality, high bits", unix.SYS_PERSONALITY, []uintptr{1<<32 | 0x40000}, unix.EPERM},
	{"ioctl TIOCSTI", unix.SYS_IOCTL, []uintptr{bad, unix.TIOCSTI}, unix.EPERM},
	{"ioctl TIOCSTI, high bits", unix.SYS_IOCTL, []uintptr{bad, 1<<32 | unix.TIOCSTI}, unix.EPERM},
	{"ioctl TIOCLINUX", unix.SYS_IOCTL, []uintptr{bad, unix.TIOCLINUX}, unix.EPERM},
	{"prctl PR_SET_MM", unix.SYS_PRCTL, []uintptr{unix.PR_SET_MM}, unix.EPERM},
	{"prlimit64 of another", unix.SYS_PRLIMIT64, []uintptr{1, unix.RLIMIT_NOFILE}, unix.EPERM},
	{"sched_setaffinity of another", unix.SYS_SCHED_SETAFFINITY, []uintptr{1}, unix.EPERM},
	{"setpriority of another", unix.SYS_SETPRIORITY, []uintptr{unix.PRIO_PROCESS, bad >> 33}, unix.EPERM},
	{"socket AF_VSOCK", unix.SYS_SOCKET, []uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
	{"socket AF_ALG", unix.SYS_SOCKET, []uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EAFNOSUPPORT},
	{"socket AF_PACKET", unix.SYS_SOCKET, []uintptr{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
	{"socket SOCK_RAW", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
	{"socket SCTP, one to many", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, unix.ESOCKTNOSUPPORT},
	{"socket DCCP", unix.SYS_SOCKET, []uintptr{unix.AF_INET6, unix.SOCK_DCCP, 33}, unix.ESOCKTNOSUPPORT},
	{"socket SCTP", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT},
	{"socket uevent", unix.SYS_SOCKET, []uintptr{unix.AF_NETLINK, unix.SOCK_RAW, 15}, unix.EPROTONOSUPPORT},
}

var permittedCalls = []call{
	{"getpid", unix.SYS_GETPID, nil, 0},
	{"personality, read", unix.SYS_PERSONALITY, []uintptr{0xffffffff}, 0},
	{"prlimit64", unix.SYS_PRLIMIT64, []uintptr{0, unix.RLIMIT_NOFILE}, 0},
	{"setpriority", unix.SYS_SETPRIORITY, []uintptr{unix.PRIO_PROCESS, 0, 1}, 0},
	{"prctl", unix.SYS_PRCTL, []uintptr{unix.PR_GET_DUMPABLE}, 0},
	{"ioctl", unix.SYS_IOCTL, []uintptr{bad, unix.TIOCGWINSZ}, unix.EBADF},
	{"socket TCP", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, 0},
	{"socket UDP", unix.SYS_SOCKET, []uintptr{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, 0},
	{"socket route", unix.SYS_SOCKET, []uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, 0},
	{"socket unix", unix.SYS_SOCKET, []uintptr{unix.AF_UNIX, unix.SOCK_SEQPACKET}, 0},
	{"seccomp", unix.SYS_SECCOMP, []uintptr{bad}, unix.EINVAL},
	{"execveat", unix.SYS_EXECVEAT, []uintptr{bad}, unix.EFAULT},
	{"close_range", unix.SYS_CLOSE_RANGE, []uintptr{1 << 30, 1 << 30}, 0},
}

// probe makes all of these calls, and tells which ended otherwise.
func probe() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if !hasLine(string(status), "Seccomp:\t2") {
		return errors.New("no filter is in force")
	}
	errs := probeLocks()
	for _, calls := range [][]call{refusedCalls, permittedCalls} {
		for _, c := range calls {
			errs = append(errs, c.probe())
		}
	}
	return errors.Join(errs...)
}

// probe makes the call.
func (c call) probe() error {
	var args [6]uintptr
	copy(args[:], c.args)
	_, _, got := syscall.RawSyscall6(c.nr, args[0], args[1], args[2], args[3], args[4], args[5])
	if got != c.want {
		return fmt.Errorf("%s: %s, want %s", c.name, unix.ErrnoName(got), unix.ErrnoName(c.want))
	}
	return nil
}

// wholeFile is a variable of the package because its address goes through a uintptr.
var wholeFile = unix.Flock_t{Type: unix.F_WRLCK}

// probeLocks takes every kind of lock on a file.
func probeLocks() []error {
	file, err := os.CreateTemp(".", "lock")
	if err != nil {
		return []error{err}
	}
	defer file.Close()
	strict := os.Getenv(profileVar) == strconv.Itoa(int(seccomp.Strict))
	var want syscall.Errno
	if strict {
		want = unix.EPERM
	}
	fd, lock := file.Fd(), uintptr(unsafe.Pointer(&wholeFile))
	calls := []call{
		{"flock", unix.SYS_FLOCK, []uintptr{fd, unix.LOCK_EX | unix.LOCK_NB}, want},
		{"F_SETLK", unix.SYS_FCNTL, []uintptr{fd, unix.F_SETLK, lock}, want},
		{"F_SETLK, high bits", unix.SYS_FCNTL, []uintptr{fd, 1<<32 | unix.F_SETLK, lock}, want},
		{"F_SETLKW", unix.SYS_FCNTL, []uintptr{fd, unix.F_SETLKW, lock}, want},
	}
	if strict { // not every file system has leases
		calls = append(calls, call{"F_SETLEASE", unix.SYS_FCNTL, []uintptr{fd, unix.F_SETLEASE, unix.F_WRLCK}, unix.EPERM})
	}
	calls = append(calls, call{"F_OFD_GETLK", unix.SYS_FCNTL, []uintptr{fd, unix.F_OFD_GETLK, lock}, 0})
	var errs []error
	for _, c := range calls {
		errs = append(errs, c.probe())
	}
	return errs
}

// hasLine says whether text has a line.
func hasLine(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }
