package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	signals    = 64
	ignore     = 1 // SIG_IGN
	sigsetSize = 8
)

// sigaction is the kernel's struct on amd64 and arm64, not libc's.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// ignoreSignals sets every signal that can be ignored to be ignored. It comes
// after the tool's start, which would otherwise inherit it. SIGCHLD stays as
// it is, for ignoring it would discard the wait statuses.
func ignoreSignals() {
	action := sigaction{handler: ignore}
	for sig := uintptr(1); sig <= signals; sig++ {
		if sig == uintptr(unix.SIGCHLD) {
			continue
		}
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, sigsetSize, 0, 0)
	}
}

// blockSignals keeps even runtime signals from interrupting this thread.
func blockSignals() {
	all := ^uint64(0)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), 0, sigsetSize, 0, 0)
}
