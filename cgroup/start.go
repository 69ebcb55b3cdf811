package cgroup

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start is like Fork, for a child of this process: it calls start, which must fork
// exactly the child that attr describes (for example exec.Cmd.Start with attr as
// SysProcAttr), and returns start's error unchanged.
//
// It sets UseCgroupFD and CgroupFD of attr. With v1 hierarchies start runs on
// another goroutine, on an OS thread that is in the group for that moment: do not use
// Pdeathsig (the thread may end), and do not wait for the calling goroutine in start.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	return g.Fork(func(dir *os.File, enter, leave []*os.File) error {
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
		if len(enter) == 0 {
			return start()
		}
		return onOwnThread(func() (fit bool, err error) {
			if err = enterAll(enter); err == nil {
				err = start()
			}
			// Where the way back is out of sight, only the thread's end leads out.
			fit = enterAll(leave) == nil && len(leave) == len(enter)
			return fit, err
		})
	})
}

// onOwnThread runs f on a thread of its own, which f may leave unfit for other
// goroutines: then it ends. It is never the main thread: that can't end, and as
// thread group leader it would make our process a candidate for the OOM killer.
func onOwnThread(f func() (fit bool, err error)) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			result <- onOwnThread(f) // while this goroutine occupies the main thread
			runtime.UnlockOSThread()
			return
		}
		fit, err := f()
		if fit {
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine
		result <- err
	}()
	return <-result
}

// enterAll moves this thread to the groups of these v1 `tasks` files.
func enterAll(tasks []*os.File) error {
	for _, file := range tasks {
		if _, err := retry(func() (int, error) { return unix.Write(int(file.Fd()), []byte("0")) }); err != nil {
			return fmt.Errorf("cannot enter group: %w", err)
		}
	}
	return nil
}
