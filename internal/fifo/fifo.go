// Package fifo says what a pipe holds, and whether somebody can read that.
package fifo

import (
	"os"
	"syscall"
	"unsafe"
)

// Held is how many bytes wait in a pipe to be read (ioctl_pipe(2)).
func Held(pipe syscall.RawConn) (int, error) {
	return held(pipe, func(fd uintptr, bytes *int32) (failed syscall.Errno) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(bytes)))
		return failed
	})
}

// HeldRaw is Held by a raw system call, for a pipe whose other end can be trusted not to hold
// its lock: see package nowait.
func HeldRaw(pipe syscall.RawConn) (int, error) {
	return held(pipe, func(fd uintptr, bytes *int32) (failed syscall.Errno) {
		_, _, failed = syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(bytes)))
		return failed
	})
}

func held(pipe syscall.RawConn, ask func(fd uintptr, bytes *int32) syscall.Errno) (int, error) {
	bytes, failed := int32(0), syscall.Errno(0)
	err := pipe.Control(func(fd uintptr) { failed = ask(fd, &bytes) })
	if err == nil && failed != 0 {
		err = os.NewSyscallError("ioctl", failed)
	}
	return int(bytes), err
}

// pollFd is that of poll(2), which reports an error at the end of a pipe that has no other.
type pollFd struct {
	fd              int32
	events, revents int16
}

const pollErr = 0x8

// Unheard says whether nobody can read any more what is written to a pipe.
func Unheard(pipe syscall.RawConn) (is bool, err error) {
	now, failed := syscall.Timespec{}, syscall.Errno(0)
	err = pipe.Control(func(fd uintptr) {
		one := pollFd{fd: int32(fd)}
		_, _, failed = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&one)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		is = one.revents&pollErr != 0
	})
	if err == nil && failed != 0 {
		err = os.NewSyscallError("ppoll", failed)
	}
	return is && err == nil, err
}
