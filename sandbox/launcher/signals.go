package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	signals    = 64
	standard   = 0 // SIG_DFL
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

// settleSignals comes before the tool's start. It ignores the signals that Go's
// runtime handles, for a tool may send them at once, and by most of them end
// the launcher; Go gives them back to a child at their default. Signals that
// the host inherited as ignored or blocked (nohup, a shell's &) are at their
// default for the tool, too. From within the namespace the kernel drops signals
// that are at their default in PID 1 (pid_namespaces(7)).
func settleSignals() {
	setMask(0)
	for sig := uintptr(1); sig <= signals; sig++ {
		switch h := handler(sig); {
		case h > ignore:
			setHandler(sig, ignore)
		case h == ignore:
			setHandler(sig, standard)
		}
	}
}

// ignoreSignals ignores the others as well. It comes after the tool's start,
// which would inherit it.
func ignoreSignals() {
	for sig := uintptr(1); sig <= signals; sig++ {
		setHandler(sig, ignore)
	}
}

func handler(sig uintptr) uintptr {
	var action sigaction
	syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&action)), sigsetSize, 0, 0)
	return action.handler
}

// setHandler spares SIGCHLD: ignoring it would discard the wait statuses.
func setHandler(sig, to uintptr) {
	if sig == uintptr(unix.SIGCHLD) {
		return
	}
	action := sigaction{handler: to}
	syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, sigsetSize, 0, 0)
}

// blockSignals keeps even runtime signals from interrupting this thread.
func blockSignals() { setMask(^uint64(0)) }

func setMask(blocked uint64) (before uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&blocked)), uintptr(unsafe.Pointer(&before)), sigsetSize, 0, 0)
	return before
}
