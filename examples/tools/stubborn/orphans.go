package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"
)

const (
	// orphanSeconds is when an orphan ends by itself, should nobody kill it.
	orphanSeconds = 120

	pidBytes      = 4
	signalSetSize = 8   // bytes, as the kernel has it
	sigSetMask    = 2   // SIG_SETMASK
	sysCloseRange = 436 // Linux 5.9, the same number on every architecture
)

// plan is all that the forked processes know.
type plan struct {
	count     int
	report    uintptr // fd that takes each orphan's pid
	holdPipes bool
}

// orphans starts n processes, each in a session of its own and without a
// parent, and returns the pids of those that came to life; a limit may stop
// the rest. They hold no file open but, with holdPipes, stdout and stderr.
func orphans(n int, holdPipes bool) ([]int, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer read.Close()
	parent, errno := plan{n, write.Fd(), holdPipes}.fork()
	_ = write.Close()
	if errno != 0 {
		return nil, fmt.Errorf("cannot fork: %w", errno)
	}
	// The pipe ends once every orphan has reported and closed it.
	raw, err := io.ReadAll(read)
	return pidsOf(raw), errors.Join(err, reap(parent))
}

func pidsOf(raw []byte) []int {
	var pids []int
	for ; len(raw) >= pidBytes; raw = raw[pidBytes:] {
		pids = append(pids, int(binary.NativeEndian.Uint32(raw)))
	}
	return pids
}

// reap waits for the process between the tool and the orphans, which is gone
// by the time they are orphans.
func reap(pid int) error {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// What follows runs in bare forks, without an exec: a Go program of its own
// would bring several threads per orphan, and limits count threads, so that
// fifty would not fit where fifty of these do. Behind a bare fork there is no
// Go runtime: no allocation, no stack that grows, no lock; only system calls.

// fork starts the orphans' parent, which forks them and ends.
//
//go:norace
func (p plan) fork() (pid int, errno syscall.Errno) {
	child, errno := bareFork()
	if errno != 0 || child != 0 {
		return int(child), errno
	}
	for range p.count {
		if child, errno = bareFork(); errno != 0 {
			break
		}
		if child == 0 {
			p.live()
		}
	}
	exit()
	return 0, 0
}

// live is an orphan's whole life.
//
//go:nosplit
//go:norace
func (p plan) live() {
	deaf := ^uint64(0)
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&deaf)), 0, signalSetSize, 0, 0)
	syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	pid, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
	word := uint32(pid)
	syscall.RawSyscall(syscall.SYS_WRITE, p.report, uintptr(unsafe.Pointer(&word)), pidBytes)
	p.closeFiles()
	rest := syscall.Timespec{Sec: orphanSeconds}
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&rest)), 0, 0)
	exit()
}

// closeFiles closes the report last: who reads its end knows of the others.
//
//go:nosplit
//go:norace
func (p plan) closeFiles() {
	first := uintptr(0)
	if p.holdPipes {
		syscall.RawSyscall(syscall.SYS_CLOSE, 0, 0, 0)
		first = 3
	}
	syscall.RawSyscall(sysCloseRange, first, p.report-1, 0)
	syscall.RawSyscall(sysCloseRange, p.report+1, uintptr(^uint32(0)), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, p.report, 0, 0)
}

// bareFork is fork(2). The runtime does not know of the child.
//
//go:nosplit
//go:norace
func bareFork() (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

//go:nosplit
//go:norace
func exit() {
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
