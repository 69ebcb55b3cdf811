package cgroup

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start runs start, which must fork exactly the child that attr describes (for
// example exec.Cmd.Start with attr as SysProcAttr), so that the child is born
// inside the group in every hierarchy. It returns start's error as it is; after
// an error of its own whatever was born is killed.
//
// It sets UseCgroupFD and CgroupFD of attr. With v1 hierarchies start runs on
// another goroutine, on an OS thread that enters the group for that moment and
// is thrown away afterwards: don't use Pdeathsig there, and let start not wait
// for the calling goroutine. Neither may it call methods of g. Meanwhile pids.max is one higher for that thread.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	return g.use(func() error {
		attr.UseCgroupFD, attr.CgroupFD = true, g.dir.fd
		if len(g.root.v1) == 0 {
			return start()
		}
		return onSpareThread(func() error { return g.startV1(start) })
	})
}

// onSpareThread runs f on a thread that dies afterwards and is not the main
// thread: that one can't be thrown away, and as thread group leader it would
// make our process a candidate for the OOM killer in the group.
func onSpareThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			result <- f()
			return
		}
		defer runtime.UnlockOSThread()
		result <- onSpareThread(f) // while this goroutine occupies the main thread
	}()
	return <-result
}

// startV1 enters the group with this thread, starts, and comes back: the thread
// must not be in the way of pids.max and rmdir until it is really dead.
func (g *Group) startV1(start func() error) error {
	if err := g.spareThreadPids(1); err != nil {
		return err
	}
	err := g.enterV1()
	if err == nil {
		err = start()
	}
	g.leaveV1()
	if e := g.spareThreadPids(0); e != nil {
		// Whoever was born has a limit that is too high: that must not last.
		_, errKill := unix.Write(g.kill, []byte("1"))
		return errors.Join(err, e, errKill)
	}
	return err
}

func (g *Group) enterV1() error {
	for _, h := range g.root.v1 {
		if err := h.tools.write(g.leaf+"/tasks", "0"); err != nil {
			return fmt.Errorf("cannot enter group: %w", err)
		}
	}
	return nil
}

// leaveV1 brings this thread home where home is in sight. Elsewhere, and where
// that fails, the thread's death does the same a moment later.
func (g *Group) leaveV1() {
	for _, h := range g.root.v1 {
		if h.home >= 0 {
			_, _ = retry(func() (int, error) { return unix.Write(h.home, []byte("0")) })
		}
	}
}

func (g *Group) spareThreadPids(extra int64) error {
	h := g.root.limited[ctrlPids]
	if g.limits.Pids == 0 || h.version != 1 {
		return nil
	}
	return h.apply(g.leaf+"/", write{ctrlPids, "pids.max", itoa(g.limits.Pids + extra)})
}
