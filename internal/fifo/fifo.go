// Package fifo says what a pipe holds.
package fifo

import (
	"os"
	"syscall"
	"unsafe"
)

// Held is how many bytes wait in a pipe to be read (ioctl_pipe(2)). call is [syscall.Syscall],
// or [syscall.RawSyscall] where the other end can be trusted not to hold the pipe's lock.
func Held(pipe syscall.RawConn, call func(trap, fd, request, result uintptr) (r1, r2 uintptr, err syscall.Errno)) (int, error) {
	bytes, failed := int32(0), syscall.Errno(0)
	err := pipe.Control(func(fd uintptr) {
		_, _, failed = call(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&bytes)))
	})
	if err == nil && failed != 0 {
		err = os.NewSyscallError("ioctl", failed)
	}
	return int(bytes), err
}
