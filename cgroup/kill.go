package cgroup

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Kill sends SIGKILL to every process of the group and everything that they
// fork meanwhile, stopped and frozen ones included, by cgroup.kill. The group
// can't be used for births afterwards. It doesn't wait: see WaitEmpty. It
// needs no new descriptor and may be called at any time and repeatedly; after
// Remove it does nothing.
func (g *Group) Kill() error {
	err := g.use(g.killMembers)
	if err == ErrRemoved || gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot kill group %s: %w", g.Path(), err)
	}
	return nil
}

func (g *Group) killMembers() error {
	_, err := retry(func() (int, error) { return unix.Write(g.kill, []byte("1")) })
	return err
}

// KillFile returns a descriptor of its own on cgroup.kill, close-on-exec: its
// holder kills the group by writing "1" to it. The caller closes it.
func (g *Group) KillFile() (*os.File, error) {
	var f *os.File
	err := g.use(func() error {
		fd, err := unix.FcntlInt(uintptr(g.kill), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		f = os.NewFile(uintptr(fd), g.Path()+"/cgroup.kill")
		return nil
	})
	return f, err
}

// Lift removes the group's CPU quota and IO limits, so that its processes can
// die: under a quota of 2% a hundred of them took seconds to. Limits of
// ancestors, such as Totals, stay: see Boost. A group that is gone is not an error.
func (g *Group) Lift() error {
	err := g.use(func() error {
		g.cpuMu.Lock()
		defer g.cpuMu.Unlock()
		g.dies = true
		return g.root.apply(g.leaf+"/", g.root.layout.undo(g.limits, ctrlCPU, ctrlIO))
	})
	if err == ErrRemoved || gone(err) {
		return nil
	}
	return err
}
