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
// another goroutine, on an OS thread that is in the group for that moment:
// don't use Pdeathsig there (the thread may be thrown away), and let start not
// wait for the calling goroutine. Neither may it call methods of g. Meanwhile
// pids.max is one higher, for that thread.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	return g.use(func() error {
		attr.UseCgroupFD, attr.CgroupFD = true, g.dir.fd
		if len(g.root.v1) == 0 {
			return start()
		}
		return onOwnThread(func() (bool, error) { return g.startV1(start) })
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

// startV1 enters the group with this thread, starts, and comes back: the thread
// must not count against pids.max or hold up rmdir any longer.
func (g *Group) startV1(start func() error) (home bool, err error) {
	if err := g.ownThreadPids(1); err != nil {
		return true, err
	}
	if err = g.enterV1(); err == nil {
		err = start()
	}
	home = g.leaveV1()
	if e := g.ownThreadPids(0); e != nil {
		// Whoever was born has a limit that is too high: that must not last.
		_, errKill := unix.Write(g.kill, []byte("1"))
		err = errors.Join(err, e, errKill)
	}
	return home, err
}

func (g *Group) enterV1() error {
	for _, h := range g.root.v1 {
		if err := h.tools.write(g.leaf+"/tasks", "0"); err != nil {
			return fmt.Errorf("cannot enter group: %w", err)
		}
	}
	return nil
}

// leaveV1 brings this thread to our process's own cgroups. Where they are out
// of sight the thread can only end, which has the same effect a moment later.
func (g *Group) leaveV1() (home bool) {
	home = true
	for _, h := range g.root.v1 {
		_, err := retry(func() (int, error) { return unix.Write(h.home, []byte("0")) })
		home = home && err == nil // also EBADF for home -1
	}
	return home
}

func (g *Group) ownThreadPids(extra int64) error {
	h := g.root.limited[ctrlPids]
	if g.limits.Pids == 0 || h.version != 1 {
		return nil
	}
	return h.apply(g.leaf+"/", write{ctrlPids, "pids.max", itoa(g.limits.Pids + extra)})
}
