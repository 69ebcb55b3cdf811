package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
)

// kernelTrees are never the host's.
var kernelTrees = []string{"/proc", "/sys", "/dev"}

// reserved are paths that are the sandbox's own; below the first ones nothing
// of the host's can be shown either. The host's programs, which every call sees,
// cannot be granted as a whole to write.
var reserved = struct{ trees, points, programs []string }{
	trees:    append(slices.Clone(kernelTrees), socketDir),
	points:   []string{"/", "/tmp", Workspace, "/run", "/etc", "/usr"},
	programs: []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"},
}

// judge knows what must not be granted by what it is, whatever it is called.
type judge struct {
	mounts mountTable
	places []place
	marks  []mark // of the places, also of those that this host does not have
}

// place is a reserved path that this host has.
type place struct {
	path  string
	write bool // it is only reserved from writing
	*opened
}

func newJudge() (j *judge, err error) {
	j = &judge{}
	if j.mounts, err = readMounts(); err != nil {
		return nil, err
	}
	j.add(false, reserved.trees)
	j.add(false, reserved.points)
	j.add(true, reserved.programs)
	return j, nil
}

func (j *judge) add(write bool, paths []string) {
	for _, path := range paths {
		p := place{path: path, write: write, opened: &opened{}}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			j.marks = append(j.marks, mark{path: path, absent: true}) // this host has none
			continue
		}
		p.file = os.NewFile(uintptr(fd), path)
		if p.look() == nil {
			j.places = append(j.places, p)
			at := marked(path, p.opened)
			at.plain = false // what is there counts, and not the way
			j.marks = append(j.marks, at)
		}
		_ = p.file.Close()
	}
}

// openGrant opens a path and judges what it has found.
func (r *Resolved) openGrant(j *judge, path string, write bool) (grant, error) {
	if path == "" {
		return grant{}, fmt.Errorf("cannot grant an empty path: name a file or folder")
	}
	target, err := filepath.Abs(path)
	if err != nil {
		return grant{}, fmt.Errorf("cannot grant %q: %w", path, err)
	}
	shown := withoutLinks(target)
	if err := checkReserved(shown); err != nil {
		return grant{}, err
	}
	o, err := openOnce(target, false)
	if err != nil {
		return grant{}, fmt.Errorf("cannot grant %s: %w", shown, text.Cause(err))
	}
	if err := j.check(o, shown, write); err != nil {
		_ = o.file.Close()
		return grant{}, fmt.Errorf("cannot grant %s: %w", shown, err)
	}
	r.held.keep(o)
	return grant{source: o.path, target: shown, write: write}, nil
}

// ErrKind is wrapped by the error for the grant of a socket, a FIFO or a device.
var ErrKind = errors.New("it is neither a file nor a folder")

// check says why something cannot be granted under the name target.
func (j *judge) check(o *opened, target string, write bool) error {
	if err := j.checkIdentity(o, target, write); err != nil {
		return err
	}
	if kind := o.stat.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return ErrKind
	}
	return j.checkBelow(o, write)
}

func (j *judge) checkIdentity(o *opened, target string, write bool) error {
	leads := "it is " + o.path
	if o.path != target {
		leads = "it is a link to " + o.path
	}
	for _, tree := range reserved.trees {
		if Within(o.path, tree) {
			return fmt.Errorf("%s, and %s is always the sandbox's own", leads, tree)
		}
	}
	if m, ok := j.mounts.find(o.id.mount); ok && kernelTypes[m.typ] {
		return fmt.Errorf("%s, of a file system that is the kernel's own (%s)", leads, m.typ)
	}
	for _, p := range j.places {
		if (write || !p.write) && p.is(&o.stat) {
			return fmt.Errorf("%s, which is %s, and the sandbox has its own; name what is needed below it", leads, p.path)
		}
	}
	return nil
}

// checkBelow refuses a folder in which something is mounted that could not be
// granted by itself.
func (j *judge) checkBelow(o *opened, write bool) error {
	if !o.folder() {
		return nil
	}
	for _, m := range j.mounts {
		if m.at != o.path && Within(m.at, o.path) && kernelTypes[m.typ] {
			return fmt.Errorf("%s in it is of a file system that is the kernel's own (%s); name what is needed beside it", m.at, m.typ)
		}
	}
	for _, p := range j.places {
		if p.write && !write {
			continue
		}
		for _, view := range j.mounts.views(p.opened, false) {
			if Within(view, o.path) {
				return fmt.Errorf("%s in it is %s, and the sandbox has its own; name what is needed beside it", view, p.path)
			}
		}
	}
	return nil
}

func checkReserved(target string) error {
	for _, tree := range reserved.trees {
		if Within(target, tree) {
			return fmt.Errorf("cannot grant %s: %s is always the sandbox's own", target, tree)
		}
	}
	if slices.Contains(reserved.points, target) {
		return fmt.Errorf("cannot grant %s: the sandbox has its own; name what is needed below it", target)
	}
	return nil
}
