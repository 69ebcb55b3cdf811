package escape

import "golang.org/x/sys/unix"

// x32 marks system calls of the x32 ABI, which a filter that compares numbers only does not know.
const x32 = 0x40000000

// machineCalls exist on this architecture only.
func machineCalls(a *arena) []attack {
	return []attack{
		{"iopl", call(unix.SYS_IOPL, 3), false},
		{"ioperm", call(unix.SYS_IOPERM, 0x80, 1, 1), false},
		{"ustat", call(unix.SYS_USTAT, 0, bad), false},
		{"sysfs", call(unix.SYS_SYSFS, 3, 0, 0), false},
		{"uselib", call(unix.SYS_USELIB, bad), false},
		{"_sysctl", call(unix.SYS__SYSCTL, bad), false},
		{"modify_ldt", call(unix.SYS_MODIFY_LDT, 0, bad, 0), true},
		{"x32 getpid", call(x32 | unix.SYS_GETPID), false},
		{"x32 mount", call(x32|unix.SYS_MOUNT, bad, bad, bad, 0, 0), false},
		{"x32 unshare", call(x32|unix.SYS_UNSHARE, 0), false},
		{"x32 ptrace", call(x32|521, unix.PTRACE_SEIZE, noPID, 0, 0), false},
		{"x32 ioctl", call(x32|514, minus(1), unix.TIOCSTI, bad), false},
		{"x32 process_vm_readv", call(x32|539, noPID, 0, 0, 0, 0, 0), false},
		{"x32 socket", call(x32|unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0), false},
		{"x32 without the bit's call", call(520, bad, 0, 0), false},
		{"number with a high bit", call(1<<32|unix.SYS_PTRACE, unix.PTRACE_SEIZE, noPID, 0, 0), true},
	}
}
