package sandbox

import (
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/lookup"
)

// fileID tells a file or folder of the host's from all others. Inode numbers
// alone are given anew, so the time of birth is part of it.
type fileID struct {
	device, inode, mount uint64
	born                 unix.StatxTimestamp
}

// opened is something of the host's, opened once (O_PATH): whatever becomes of
// its path, the descriptor stays what was judged.
type opened struct {
	file *os.File
	// path is its real one, by which the kernel knows it.
	path string
	id   fileID
	stat unix.Stat_t
}

var errMoved = errors.New("it has been moved, replaced or removed at this moment; try again")

// openOnce opens an absolute path; plain refuses one that is a link itself.
func openOnce(path string, plain bool) (*opened, error) {
	file, err := lookup.Open(path, plain)
	if err != nil {
		return nil, err
	}
	o := &opened{file: file}
	if err := o.look(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return o, nil
}

// look finds out what it is. The kernel's name of it must lead to it: that of
// something removed does not.
func (o *opened) look() (err error) {
	fd := int(o.file.Fd())
	var x unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME|unix.STATX_MNT_ID, &x); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &o.stat); err != nil {
		return err
	}
	o.id = fileID{device: uint64(o.stat.Dev), inode: o.stat.Ino, mount: x.Mnt_id, born: x.Btime}
	if o.path, err = os.Readlink(selfPath(o.file)); err != nil {
		return err
	}
	var there unix.Stat_t
	if !strings.HasPrefix(o.path, "/") || unix.Lstat(o.path, &there) != nil || !o.is(&there) {
		return errMoved
	}
	return nil
}

func (o *opened) is(st *unix.Stat_t) bool { return st.Dev == o.stat.Dev && st.Ino == o.stat.Ino }

func (o *opened) folder() bool { return o.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// held are the files of a policy that has been resolved, by their real paths.
// They are closed when nobody needs them any more, at the latest when they are
// garbage. A nil one holds nothing.
type held struct {
	files  map[string]*opened
	mounts mountTable // as they were then
	marks  []mark     // of the reserved places, by which the paths were judged
	known  *judged    // what a Guard remembers of the policy; nil if it does not
	own    *judgedOwn // where the policy has its masks of it; nil if it has not

	mu   sync.Mutex
	shut bool // the files are not open: that is for the first use
	uses int  // starts under way
	over bool
}

// use keeps the files open until done is called.
func (h *held) use() (done func(), err error) {
	if h == nil {
		return func() {}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		if err := h.reopen(); err != nil {
			return nil, err
		}
	}
	h.uses++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.uses--
		h.tidy()
	}), nil
}

// close closes the files, after the starts that use them. Later ones open them again.
func (h *held) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.tidy()
}

func (h *held) tidy() {
	if h.over && h.uses == 0 && !h.shut {
		for _, o := range h.files {
			_ = o.file.Close()
		}
		h.shut = true
	}
}

// keep takes one over. Of two with the same path the first stays.
func (h *held) keep(o *opened) {
	if _, ok := h.files[o.path]; ok {
		_ = o.file.Close()
		return
	}
	h.files[o.path] = o
}

func (h *held) get(path string) *opened {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.files[path]
}
