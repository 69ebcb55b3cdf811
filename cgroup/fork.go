package cgroup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Fork calls birth, which must cause exactly one fork, in any process, such that
// the child is born inside the group in every hierarchy. It must use dir as
// CLONE_INTO_CGROUP's descriptor (clone3(2)); the forking thread must write "0" to
// each of enter before the fork, and to each of leave after it (cgroup v1's `tasks`
// files; those in leave are of our own process's cgroups). A process's main thread
// must not do that: as thread group leader it would become a candidate for the OOM
// killer.
//
// The files are open during birth only. birth must not call methods of g. While it
// runs, pids.max is one higher, for the forking thread. Fork returns birth's error
// unchanged; after any other error, a process that was born is killed.
func (g *Group) Fork(birth func(dir *os.File, enter, leave []*os.File) error) error {
	if g.root.mode == ModeNone {
		return birth(nil, nil, nil)
	}
	return g.use(func() (err error) {
		var open files
		defer open.close()
		dir := open.dup(g.dir.fd)
		var enter, leave []*os.File
		for _, h := range g.root.v1 {
			enter = append(enter, open.in(h.tools, g.leaf+"/tasks"))
			if h.home >= 0 {
				leave = append(leave, open.dup(h.home))
			}
		}
		if open.err != nil {
			return open.err
		}
		g.root.all.favourStart()
		if len(enter) == 0 {
			return birth(dir, nil, nil)
		}
		if err := g.ownThreadPids(1); err != nil {
			return err
		}
		defer func() {
			if e := g.ownThreadPids(0); e != nil {
				// Whoever was born has a limit that is too high: that must not last.
				err = errors.Join(err, e, g.killMembers())
			}
		}()
		return birth(dir, enter, leave)
	})
}

// ownThreadPids makes room for the forking thread, which v1 counts too.
func (g *Group) ownThreadPids(extra int64) error {
	h := g.root.limited[ctrlPids]
	if g.limits.Pids == 0 || h.version != 1 {
		return nil
	}
	return h.apply(g.leaf+"/", write{ctrlPids, "pids.max", itoa(g.limits.Pids + extra)})
}

// files opens several and remembers the first error.
type files struct {
	list []*os.File
	err  error
}

func (f *files) add(fd int, err error) *os.File {
	if err != nil {
		f.err = errors.Join(f.err, err)
		return nil
	}
	file := os.NewFile(uintptr(fd), "cgroup")
	f.list = append(f.list, file)
	return file
}

func (f *files) dup(fd int) *os.File {
	return f.add(unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0))
}

func (f *files) in(d *dir, name string) *os.File { return f.add(d.openFile(name, unix.O_WRONLY)) }

func (f *files) close() {
	for _, file := range f.list {
		_ = file.Close()
	}
}
