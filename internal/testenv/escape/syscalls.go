package escape

import (
	"golang.org/x/sys/unix"
)

// bad is an address that is never mapped: where the kernel gets so far as to read it, the answer is EFAULT.
const bad = 1

// noPID is above the kernel's highest pid.
const noPID = 1 << 23

// attack is a system call with arguments that do nothing even where everything is allowed.
type attack struct {
	name string
	step step
	// informs says that an unprivileged program may well have this call: its fact only informs.
	informs bool
}

// systemCalls tries what a tool has no business with. A refusal by the call's own argument checks means that only a
// capability, or nothing, stood between the tool and the kernel's code: it counts as reached.
func systemCalls(p *probe) {
	a := newArena()
	defer a.free()
	var all []attack
	for _, table := range [][]attack{processCalls(a), mountCalls(a), kernelCalls(a), privilegedCalls(a), memoryCalls(a), modestCalls(a), machineCalls(a)} {
		all = append(all, table...)
	}
	for _, t := range all {
		o := attempt(t.step)
		if t.informs {
			p.info(t.name, "%s", o.name())
			continue
		}
		p.blocked(t.name, o)
	}
	// Without a terminal vhangup hangs up nothing.
	p.blocked("vhangup", attempt(call(unix.SYS_SETSID).orEnd(), call(unix.SYS_VHANGUP)))
	p.terminalTricks()
	p.personalities()
}

func processCalls(a *arena) []attack {
	iov := a.words(bad, 1)
	return []attack{
		{"ptrace seize", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, noPID, 0, 0), false},
		{"ptrace traceme", call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0), false},
		{"ptrace with a high bit", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE|1<<48, noPID, 0, 0), false},
		{"process_vm_readv", call(unix.SYS_PROCESS_VM_READV, noPID, iov, 1, iov, 1, 0), false},
		{"process_vm_writev", call(unix.SYS_PROCESS_VM_WRITEV, noPID, iov, 1, iov, 1, 0), false},
		{"process_madvise", call(unix.SYS_PROCESS_MADVISE, minus(1), iov, 1, unix.MADV_COLD, 0), false},
		{"pidfd_getfd", call(unix.SYS_PIDFD_GETFD, minus(1), 0, 0), false},
		{"kcmp", call(unix.SYS_KCMP, noPID, noPID, 0, 0, 0), false},
		{"perf_event_open", call(unix.SYS_PERF_EVENT_OPEN, bad, 0, minus(1), minus(1), 0), false},
		{"lookup_dcookie", call(unix.SYS_LOOKUP_DCOOKIE, 0, bad, 1), false},
	}
}

func mountCalls(a *arena) []attack {
	empty := a.str("")
	none := minus(1)
	return []attack{
		{"mount", call(unix.SYS_MOUNT, bad, bad, bad, 0, 0), false},
		{"mount remount", call(unix.SYS_MOUNT, 0, bad, 0, unix.MS_REMOUNT|unix.MS_BIND, 0), false},
		{"umount2", call(unix.SYS_UMOUNT2, bad, 0), false},
		{"umount2 detach", call(unix.SYS_UMOUNT2, bad, unix.MNT_DETACH), false},
		{"pivot_root", call(unix.SYS_PIVOT_ROOT, bad, bad), false},
		{"chroot", call(unix.SYS_CHROOT, bad), false},
		{"open_tree", call(unix.SYS_OPEN_TREE, none, empty, unix.AT_EMPTY_PATH), false},
		{"open_tree clone", call(unix.SYS_OPEN_TREE, none, empty, unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE), false},
		{"open_tree_attr", call(467, none, empty, unix.AT_EMPTY_PATH, bad, 32), false},
		{"move_mount", call(unix.SYS_MOVE_MOUNT, none, empty, none, empty, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH), false},
		{"fsopen", call(unix.SYS_FSOPEN, bad, 0), false},
		{"fsconfig", call(unix.SYS_FSCONFIG, none, unix.FSCONFIG_CMD_CREATE, 0, 0, 0), false},
		{"fsmount", call(unix.SYS_FSMOUNT, none, 0, 0), false},
		{"fspick", call(unix.SYS_FSPICK, none, empty, unix.FSPICK_EMPTY_PATH), false},
		{"mount_setattr", call(unix.SYS_MOUNT_SETATTR, none, empty, unix.AT_EMPTY_PATH, bad, 32), false},
		{"statmount", call(457, bad, bad, 1, 0), true},
		{"listmount", call(458, bad, bad, 1, 0), true},
	}
}

func kernelCalls(a *arena) []attack {
	return []attack{
		{"bpf map", call(unix.SYS_BPF, 0, bad, 48), false},
		{"bpf program", call(unix.SYS_BPF, 5, bad, 48), false},
		{"bpf object", call(unix.SYS_BPF, 7, bad, 48), false},
		{"io_uring_setup", call(unix.SYS_IO_URING_SETUP, 1, bad), false},
		{"io_uring_enter", call(unix.SYS_IO_URING_ENTER, minus(1), 0, 0, 0, 0, 0), false},
		{"io_uring_register", call(unix.SYS_IO_URING_REGISTER, minus(1), 0, 0, 0), false},
		{"keyctl session", call(unix.SYS_KEYCTL, 0, minus(3), 0), false},
		{"keyctl join", call(unix.SYS_KEYCTL, 1, 0, 0), false},
		{"keyctl describe", call(unix.SYS_KEYCTL, 6, minus(4), 0, 0), false},
		{"add_key", call(unix.SYS_ADD_KEY, bad, bad, 0, 0, 0), false},
		{"request_key", call(unix.SYS_REQUEST_KEY, bad, bad, 0, 0), false},
		{"init_module", call(unix.SYS_INIT_MODULE, bad, 1, bad), false},
		{"finit_module", call(unix.SYS_FINIT_MODULE, minus(1), bad, 0), false},
		{"delete_module", call(unix.SYS_DELETE_MODULE, bad, unix.O_NONBLOCK), false},
		{"kexec_load", call(unix.SYS_KEXEC_LOAD, 0, 1<<20, bad, 0xfff0), false},
		{"kexec_file_load", call(unix.SYS_KEXEC_FILE_LOAD, minus(1), minus(1), 0, 0, 0xfff0), false},
		{"fanotify_init", call(unix.SYS_FANOTIFY_INIT, minus(1), 0), false},
		{"lsm_set_self_attr", call(460, bad, bad, 1, 0), false},
		{"syslog size", call(unix.SYS_SYSLOG, 10, 0, 0), false},
		{"syslog read all", call(unix.SYS_SYSLOG, 3, bad, 0), false},
		{"syslog unread", call(unix.SYS_SYSLOG, 9, 0, 0), false},
		{"nfsservctl", call(unix.SYS_NFSSERVCTL, 0, 0, 0), false},
		{"quotactl", call(unix.SYS_QUOTACTL, 0x80000700, bad, 0, bad), false},
		{"quotactl_fd", call(unix.SYS_QUOTACTL_FD, minus(1), 0x80000700, 0, bad), false},
		{"open_by_handle_at", call(unix.SYS_OPEN_BY_HANDLE_AT, minus(1), a.words(8|1<<32, 2, 0), 0), false},
	}
}

func privilegedCalls(a *arena) []attack {
	// struct timex: modes, offset, freq, maxerror, esterror, status, constant, precision, tolerance, time (2), tick.
	// A tick of 1 µs is out of its range.
	const adjTick = 0x4000
	tick := a.words(adjTick, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	notATime := a.words(0, 5_000_000_000)
	return []attack{
		{"reboot", call(unix.SYS_REBOOT, 1, 2, 3, 0), false},
		{"reboot with a high bit", call(unix.SYS_REBOOT, 1<<32, 2, 3, 0), false},
		{"swapon", call(unix.SYS_SWAPON, bad, 0), false},
		{"swapoff", call(unix.SYS_SWAPOFF, bad), false},
		{"acct", call(unix.SYS_ACCT, bad), false},
		{"sethostname", call(unix.SYS_SETHOSTNAME, bad, 1), false},
		{"setdomainname", call(unix.SYS_SETDOMAINNAME, bad, 1), false},
		{"clock_settime", call(unix.SYS_CLOCK_SETTIME, 0, notATime), false},
		{"settimeofday", call(unix.SYS_SETTIMEOFDAY, bad, 0), false},
		{"adjtimex", call(unix.SYS_ADJTIMEX, tick), false},
		{"clock_adjtime", call(unix.SYS_CLOCK_ADJTIME, 0, tick), false},
	}
}

func memoryCalls(a *arena) []attack {
	return []attack{
		{"userfaultfd", call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC), false},
		{"userfaultfd user only", call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1), false},
		{"move_pages", call(unix.SYS_MOVE_PAGES, 0, 1, bad, 0, bad, 0), false},
		{"move_pages of pid 1", call(unix.SYS_MOVE_PAGES, 1, 0, 0, 0, 0, 0), false},
		{"migrate_pages", call(unix.SYS_MIGRATE_PAGES, 0, 1, bad, bad), false},
		{"mbind", call(unix.SYS_MBIND, 0, 0, minus(1), 0, 0, 0), false},
		{"set_mempolicy", call(unix.SYS_SET_MEMPOLICY, minus(1), 0, 0), false},
		{"set_mempolicy_home_node", call(450, 0, 0, 0, minus(1)), false},
		{"prctl set_mm", call(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_BRK, 0, 0, 0), false},
		{"get_mempolicy", call(unix.SYS_GET_MEMPOLICY, a.words(0), 0, 0, 0, 0), true},
		{"memfd_secret", call(unix.SYS_MEMFD_SECRET, minus(1)), true},
		{"vmsplice", call(unix.SYS_VMSPLICE, minus(1), bad, 1, 0), true},
	}
}

// modestCalls restrict the caller itself or act on what it could reach anyway.
func modestCalls(a *arena) []attack {
	return []attack{
		{"landlock_create_ruleset", call(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1), true},
		{"seccomp filter", call(unix.SYS_SECCOMP, 1, 0, bad), true},
		{"seccomp listener", call(unix.SYS_SECCOMP, 1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, bad), true},
		{"pidfd_open", call(unix.SYS_PIDFD_OPEN, noPID, 0), true},
		{"process_mrelease", call(unix.SYS_PROCESS_MRELEASE, minus(1), 0), true},
		{"name_to_handle_at", call(unix.SYS_NAME_TO_HANDLE_AT, minus(1), a.str(""), bad, bad, unix.AT_EMPTY_PATH), true},
		{"fanotify_mark", call(unix.SYS_FANOTIFY_MARK, minus(1), 0, 0, 0, 0), true},
		{"lsm_list_modules", call(461, bad, bad, 0), true},
		{"file_setattr", call(469, minus(1), bad, bad, 1, 0), true},
		{"an unknown number", call(4000), true},
	}
}

// terminalTricks would type into a terminal. The kernel looks at the low 32 bits of a request only (CVE-2019-10063).
func (p *probe) terminalTricks() {
	const linux, setConsole = 0x541C, 0x541D
	for _, t := range []struct {
		name    string
		request uintptr
	}{
		{"TIOCSTI", unix.TIOCSTI},
		{"TIOCSTI with bit 32", unix.TIOCSTI | 1<<32},
		{"TIOCSTI with bit 63", unix.TIOCSTI | 1<<63},
		{"TIOCSTI sign-extended", unix.TIOCSTI | 0xFFFFFFFF<<32},
		{"TIOCLINUX", linux},
		{"TIOCLINUX with bit 32", linux | 1<<32},
	} {
		p.blocked(t.name, attempt(call(unix.SYS_IOCTL, minus(1), t.request, bad)))
	}
	p.info("TIOCCONS", "%s", attempt(call(unix.SYS_IOCTL, minus(1), setConsole, 0)).name())
	p.info("TIOCSETD", "%s", attempt(call(unix.SYS_IOCTL, minus(1), unix.TIOCSETD, bad)).name())
}

// personalities would switch off defences of what is executed next.
func (p *probe) personalities() {
	const noRandomize, readImpliesExec, mmapPageZero, linux32 = 0x0040000, 0x0400000, 0x0100000, 0x0008
	for name, persona := range map[string]uintptr{
		"no randomization": noRandomize, "no randomization, with a high bit": noRandomize | 1<<32,
		"read implies exec": readImpliesExec, "mmap page zero": mmapPageZero, "everything": 0xFFFFFFFE,
	} {
		p.blocked("personality "+name, attempt(call(unix.SYS_PERSONALITY, persona)))
	}
	p.info("personality linux32", "%s", attempt(call(unix.SYS_PERSONALITY, linux32)).name())
}
