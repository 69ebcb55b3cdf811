// Package fifo says what a pipe holds.
package fifo

import (
	"os"
	"syscall"
	"unsafe"
)

// Held is how many bytes wait in a pipe to be read (ioctl_pipe(2)).
func Held(pipe syscall.RawConn) (int, error) {
	bytes, failed := int32(0), syscall.Errno(0)
	err := pipe.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&bytes)))
	})
	if err == nil && failed != 0 {
		err = os.NewSyscallError("ioctl", failed)
	}
	return int(bytes), err
}
