package main

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// refused fail with EPERM whatever their arguments and whatever Docker says of them. Those that Docker refuses too are
// named so that no update of its profile opens them, and, where it does not name them, so that they fail with EPERM
// rather than ENOSYS.
var refused = [][]string{
	// Other processes' memory and files: a tool has the uid of the adapter above it.
	{
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
		"move_pages", "migrate_pages",
	},
	// Namespaces and mounts, and file handles, which reach around them (open_by_handle_at(2)).
	{
		"unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen",
		"fsmount", "fsconfig", "fspick", "mount_setattr", "statmount", "listmount", "open_by_handle_at", "name_to_handle_at",
		"quotactl", "quotactl_fd", "fanotify_init", "fanotify_mark",
	},
	// Large parts of the kernel that tools do without, and exploits do not.
	{
		"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "memfd_secret", "remap_file_pages",
		"vmsplice", "lookup_dcookie", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules",
	},
	// The machine as a whole. adjtimex(2) also reads the clock's state, but which it does stands behind a pointer.
	{
		"init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms", "kexec_load",
		"kexec_file_load", "reboot", "swapon", "swapoff", "acct", "sethostname", "setdomainname", "syslog", "vhangup",
		"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm", "modify_ldt",
	},
	// Placement of memory: Docker asks for CAP_SYS_NICE.
	{"mbind", "get_mempolicy", "set_mempolicy", "set_mempolicy_home_node"},
	// Obsolete.
	{"ustat", "sysfs", "uselib", "nfsservctl", "_sysctl"},
}

// hidden fail with ENOSYS, so that programs take an older way: clone3(2) and openat2(2) have their flags and modes behind
// a pointer, io_uring(7) does most of what is filtered here, unfiltered, and one caller of io_setup(2) can use up what
// the whole machine has (fs.aio-max-nr).
var hidden = []string{
	"clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"io_setup", "io_submit", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents",
}

// newNamespaces are the flags of clone(2) that make a namespace. CLONE_NEWTIME is not among them: its bit belongs to the
// exit signal here.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Values of linux/ioprio.h, linux/fs.h, linux/personality.h and linux/shm.h that package unix lacks.
const (
	shmHugeTLB        = 0o4000
	ioprioWhoProcess  = 1
	addrNoRandomize   = 0x0040000
	readImpliesExec   = 0x0400000
	personalityGetter = 0xffffffff
)

// asked are the calls that depend on their arguments.
func asked(docker dockerProfile, strict bool) map[string]decision {
	second := onSelf(1)
	calls := map[string]decision{
		"clone": &question{arg: 0, mask: newNamespaces, values: []uint32{0}, yes: allow, no: refuse},
		// What a terminal reads as typed is a command to whoever reads it after the tool.
		"ioctl":       whether(1, refuse, allow, unix.TIOCSTI, unix.TIOCLINUX),
		"prctl":       whether(0, refuse, allow, unix.PR_SET_MM),
		"personality": whether(0, allow, refuse, personalities(docker)...),
		"socket":      socket(),
		"socketpair":  whether(0, allow, errno(unix.EAFNOSUPPORT), unix.AF_UNIX),

		// A file that is set-id leaves a granted folder with its owner's rights: the caller's, who may be root.
		"chmod": setIDs(1), "fchmod": setIDs(1), "fchmodat": setIDs(2), "fchmodat2": setIDs(2),
		"creat": setIDs(1), "open": creates(1), "openat": creates(2), "mknod": setIDs(1), "mknodat": setIDs(2),
		// A lease holds up whoever opens the file, on the host too.
		"fcntl": whether(1, refuse, allow, unix.F_SETLEASE, unix.F_SETDELEG),

		// Reserved huge pages are the whole machine's, and count to no memory limit. Programs that ask for them, such as
		// JVMs and databases, do without them on a machine that has none, as this error says. memfd_create(2) fails as on
		// a kernel that does not know them: Chromium asks it with all flags at once, and ends at any other error.
		"mmap": without(3, unix.MAP_HUGETLB, unix.ENOMEM), "shmget": without(2, shmHugeTLB, unix.ENOMEM),
		"memfd_create": without(1, unix.MFD_HUGETLB, unix.EINVAL),

		"setpriority": whether(0, second, refuse, unix.PRIO_PROCESS),
		"ioprio_set":  whether(0, second, refuse, ioprioWhoProcess),
	}
	first := onSelf(0)
	for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"} {
		calls[name] = first
	}
	if strict {
		maps.Copy(calls, locks())
	}
	return calls
}

// without fails where an argument has a flag.
func without(arg int, flag uint32, failure unix.Errno) decision {
	return &question{arg: arg, mask: flag, values: []uint32{0}, yes: allow, no: errno(failure)}
}

// setIDs refuses a mode with set-user-ID or set-group-ID bits.
func setIDs(mode int) decision {
	return &question{arg: mode, mask: unix.S_ISUID | unix.S_ISGID, values: []uint32{0}, yes: allow, no: refuse}
}

// creates refuses set-id bits of an open that can make a file; others have no mode, and whatever in its place.
func creates(flags int) decision {
	const tmpfile = 0o20000000 // __O_TMPFILE: O_TMPFILE has O_DIRECTORY too
	return &question{arg: flags, mask: unix.O_CREAT | tmpfile, values: []uint32{0}, yes: allow, no: setIDs(flags + 1)}
}

// onSelf allows a call whose argument names a process or thread only where that is 0, the caller: the adapter above a
// tool has the same uid. A number that happens to be the caller's own is refused as well, for the filter cannot know it;
// so pthread_setaffinity_np(3) and pthread_setschedparam(3), which pass thread ids, fail with EPERM. Groups and users
// (PRIO_PGRP, PRIO_USER) are refused even as 0: setpgid(2) can make the adapter's group the caller's own.
func onSelf(arg int) decision { return whether(arg, allow, refuse, 0) }

// personalities are the values that Docker allows, without those that weaken the memory layout. The getter is not a set
// of flags, although it has all bits.
func personalities(docker dockerProfile) []uint32 {
	return slices.DeleteFunc(docker.firstArgs("personality"), func(v uint32) bool {
		return v != personalityGetter && v&(addrNoRandomize|readImpliesExec) != 0
	})
}

// socket allows what programs expect of a network and nothing else: every further family and protocol is attack surface,
// and AF_VSOCK leads out of a network namespace. The errors are those of a kernel that lacks the family, type or protocol,
// but for raw sockets that of a caller without CAP_NET_RAW (socket(2), raw(7)).
func socket() decision {
	const sockTypeMask = 0xf // SOCK_TYPE_MASK of linux/net.h: the rest is SOCK_CLOEXEC and SOCK_NONBLOCK
	protocol := whether(2, allow, errno(unix.EPROTONOSUPPORT), 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP,
		unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)
	internet := &question{
		arg: 1, mask: sockTypeMask, values: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, yes: protocol,
		no: &question{
			arg: 1, mask: sockTypeMask, values: []uint32{unix.SOCK_RAW, unix.SOCK_PACKET},
			yes: refuse, no: errno(unix.ESOCKTNOSUPPORT),
		},
	}
	netlink := whether(2, allow, errno(unix.EPROTONOSUPPORT), unix.NETLINK_ROUTE)
	return whether(0, allow,
		whether(0, internet,
			whether(0, netlink, errno(unix.EAFNOSUPPORT), unix.AF_NETLINK),
			unix.AF_INET, unix.AF_INET6),
		unix.AF_UNIX)
}

// locks refuse every lock and lease on a file. EPERM, because a program that wants a lock must not go on without: ENOSYS
// and EOPNOTSUPP let cargo and the go command do that, ENOLCK lets apt, and SQLite takes it for "busy" and tries again.
func locks() map[string]decision {
	return map[string]decision{
		"flock": refuse,
		"fcntl": whether(1, refuse, allow, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
			unix.F_SETLEASE, unix.F_SETDELEG),
	}
}
