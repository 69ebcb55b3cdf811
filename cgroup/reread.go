package cgroup

import (
	"sync"

	"golang.org/x/sys/unix"
)

// rereads are the files of a group's usage that are read more than once, as those of a
// process that is kept for many calls are: from the second time on they stay open until
// the group's descriptors are closed.
type rereads struct {
	mu   sync.Mutex
	open map[reread]int // descriptors; noFile after the first time
}

type reread struct {
	d    *dir
	name string
}

const noFile = -1

// read is d.read.
func (r *rereads) read(d *dir, name string) (string, error) {
	fd, err := r.file(reread{d, name})
	if err != nil {
		return "", err
	}
	if fd == noFile {
		return d.read(name)
	}
	s, err := readAll(fd)
	return s, pathError("read", d.join(name), err)
}

// file is noFile for one that is read the first time.
func (r *rereads) file(of reread) (fd int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fd, again := r.open[of]
	switch {
	case !again && r.open == nil:
		r.open = map[reread]int{of: noFile}
		return noFile, nil
	case !again:
		r.open[of] = noFile
		return noFile, nil
	case fd != noFile:
		return fd, nil
	}
	if fd, err = of.d.openFile(of.name, unix.O_RDONLY); err == nil {
		r.open[of] = fd
	}
	return fd, err
}

func (r *rereads) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fd := range r.open {
		if fd != noFile {
			_ = unix.Close(fd)
		}
	}
	r.open = nil
}
