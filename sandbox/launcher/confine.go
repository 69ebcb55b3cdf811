package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// confine takes from this thread, which will fork the tool, all that the tool
// must not have, and from the launcher's other threads what they no longer
// need. There is no way back from any of it.
func confine(root *wire.Root) {
	syscall.Umask(0o022)
	for _, limit := range root.Limits {
		value := uint64(limit.Value)
		must(wire.StepLimits, unix.Setrlimit(int(limit.Resource), &unix.Rlimit{Cur: value, Max: value}))
	}
	// The caller's keys are not the tool's. A kernel without keyrings has none.
	_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	dropCapabilities()
	if root.Landlock > 0 {
		must("apply Landlock", landlock(root))
	}
	must("install the system call filter", filter(seccomp.Profile(root.Seccomp)))
}

// secureBits lock out every way to capabilities by uid 0 (capabilities(7)).
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

func dropCapabilities() {
	for capability := uintptr(0); known(capability); capability++ {
		must("drop the bounding set", unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0))
	}
	must("set secure bits", unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0))
	must("drop ambient capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		must("drop capabilities", errno)
	}
	// Only of this thread: the others never execute anything.
	must("renounce new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// known says whether this kernel has the capability.
func known(capability uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, capability, 0)
	return errno == 0
}

func filter(profile seccomp.Profile) error {
	program := seccomp.Filter(profile)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}
