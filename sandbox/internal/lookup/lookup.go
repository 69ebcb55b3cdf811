// Package lookup opens paths of the host so that nobody else decides where they
// lead.
package lookup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks bounds the symbolic links on the way to a path, as the kernel does.
const maxLinks = 40

// steeredError says that others decide where a path leads.
type steeredError struct{ link, folder, real string }

func (e *steeredError) Error() string {
	return fmt.Sprintf("%s is a link to %s in %s, which others can write to, who can make it lead elsewhere; name %s itself", e.link, e.real, e.folder, e.real)
}

// lookup is the way down to one path. Links are followed by hand, so that each
// can be judged by the folder that it lies in.
type lookup struct {
	at    int      // descriptor (O_PATH) of where it is
	here  string   // its path, without links
	rest  []string // names still to go
	links int
	plain bool // what the path names itself must not be a link
}

// ErrLink is that of a path which was to be plain.
var ErrLink = errors.New("it is a link")

// Open opens (O_PATH) what an absolute path names, following links where nobody
// else can have put them; plain refuses one that is a link itself, with ErrLink.
func Open(path string, plain bool) (*os.File, error) {
	l := &lookup{at: -1, rest: strings.Split(path, "/"), plain: plain}
	err := l.root()
	for err == nil && len(l.rest) > 0 {
		err = l.step()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return os.NewFile(uintptr(l.at), path), nil
}

func (l *lookup) close() {
	if l.at >= 0 {
		_ = unix.Close(l.at)
	}
}

func (l *lookup) root() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.move(fd, "/")
	return nil
}

func (l *lookup) move(fd int, here string) {
	l.close()
	l.at, l.here = fd, here
}

// step goes on by one name.
func (l *lookup) step() error {
	name := l.rest[0]
	l.rest = l.rest[1:]
	if name == "" || name == "." {
		return nil
	}
	next, err := l.open(name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(next, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = l.follow(next, filepath.Join(l.here, name), &st)
		_ = unix.Close(next)
		return err
	}
	if err != nil {
		_ = unix.Close(next)
		return err
	}
	l.move(next, filepath.Join(l.here, name))
	return nil
}

// open opens a name. It asks for a folder first: nothing else has an automount (autofs) mount
// what it stands for.
func (l *lookup) open(name string) (int, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(l.at, name, flags|unix.O_DIRECTORY, 0)
	if err == unix.ENOTDIR {
		return unix.Openat(l.at, name, flags, 0)
	}
	return fd, err
}

// follow puts a link's target before what is still to go.
func (l *lookup) follow(link int, path string, st *unix.Stat_t) error {
	if l.plain && l.links == 0 && len(l.rest) == 0 {
		return ErrLink
	}
	if l.links++; l.links > maxLinks {
		return unix.ELOOP
	}
	if err := l.leaveProc(path); err != nil {
		return err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", buf)
	if err != nil {
		return err
	}
	target := string(buf[:n])
	if err := l.judge(path, target, st); err != nil {
		return err
	}
	l.rest = append(strings.Split(target, "/"), l.rest...)
	if strings.HasPrefix(target, "/") {
		return l.root()
	}
	return nil
}

// leaveProc refuses the links of /proc, which lead to where no path does.
func (l *lookup) leaveProc(path string) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(l.at, &fs); err != nil {
		return err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("it leads through the link %s, and /proc is always the sandbox's own", path)
	}
	return nil
}

// judge refuses a link that others may have put where it is.
func (l *lookup) judge(path, target string, link *unix.Stat_t) error {
	var folder unix.Stat_t
	if err := unix.Fstat(l.at, &folder); err != nil {
		return err
	}
	if !steerable(&folder, link, os.Geteuid()) {
		return nil
	}
	if !strings.HasPrefix(target, "/") {
		target = filepath.Join(l.here, target)
	}
	return &steeredError{link: path, folder: l.here, real: Real(target)}
}

// steerable says whether somebody else may decide where a link leads: for root,
// wherever anybody else can write to its folder; for others as the kernel's
// fs.protected_symlinks, which root's many folders are too few for.
func steerable(folder, link *unix.Stat_t, uid int) bool {
	if uid == 0 {
		return folder.Uid != 0 || folder.Mode&0o022 != 0
	}
	return folder.Mode&0o002 != 0 && int(link.Uid) != uid && link.Uid != 0
}

// Real follows all links in what exists of path, whatever their owner. It is for
// messages and comparisons.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(Real(parent), filepath.Base(path))
	}
	return path
}

// Way returns what decides where a path leads: the links on it, whatever their owner,
// by their real paths, and the first name that is missing, if one is.
func Way(path string) (links []string, missing string) {
	if full, err := filepath.Abs("."); err == nil && !filepath.IsAbs(path) {
		path = full + "/" + path
	}
	here, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 && len(links) < maxLinks {
		next := filepath.Join(here, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return links, next
		case err != nil: // it is no link
			here = next
			continue
		case filepath.IsAbs(target):
			here = "/"
		}
		links = append(links, next)
		rest = append(strings.Split(target, "/"), rest...)
	}
	return links, ""
}

// Folder opens the folder of an absolute path.
func Folder(path string) (*os.Root, error) {
	at, err := Open(path, false)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	judged, err := at.Stat()
	got, gotErr := root.Stat(".")
	if err = errors.Join(err, gotErr); err == nil && !os.SameFile(judged, got) {
		err = errors.New("it has been replaced at this moment; try again")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// MakeFolder makes a folder, and those above it, with this mode where they are missing.
func MakeFolder(path string, mode os.FileMode) error {
	above, missing := path, "."
	at, err := Open(above, false)
	for errors.Is(err, unix.ENOENT) && above != "/" {
		missing, above = filepath.Join(filepath.Base(above), missing), filepath.Dir(above)
		at, err = Open(above, false)
	}
	if err != nil {
		return err
	}
	defer at.Close()
	info, err := at.Stat()
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return unix.ENOTDIR
	case missing == ".":
		return nil
	}
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(at.Fd())))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(missing, mode)
}
