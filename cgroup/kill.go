package cgroup

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Kill sends SIGKILL by cgroup.kill to every process of the group, including stopped
// and frozen ones and those forked meanwhile. Afterwards no process can be born in
// the group. Kill does not wait: see WaitEmpty. It needs no new descriptor and may be
// called at any time and repeatedly; after Remove it does nothing.
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

// KillFile returns a new, close-on-exec descriptor of cgroup.kill, whose holder kills
// the group by writing "1" to it. The caller must close it.
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

// Lift removes the group's CPU quota and IO limits, so that its processes can die
// quickly: under a quota of 2% a hundred of them took seconds. Limits of ancestors,
// such as Totals, stay: see Boost. It is not an error if the group is gone.
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
