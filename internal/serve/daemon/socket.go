package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/tools/config"
)

const defaultSocketMode fs.FileMode = 0o600

const maxSocketPath = 107 // unix(7)

// SocketPath returns the path of the unix socket of a daemon with these settings: theirs,
// else /run/toolhost/toolhost.sock for root, and $XDG_RUNTIME_DIR/toolhost/toolhost.sock for
// others.
func SocketPath(settings config.Daemon) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	switch {
	case settings.Socket != "":
		return settings.Socket, nil
	case os.Geteuid() == 0:
		return "/run/toolhost/toolhost.sock", nil
	case filepath.IsAbs(dir):
		return filepath.Join(dir, "toolhost", "toolhost.sock"), nil
	}
	return "", errors.New("there is no place for the daemon's socket: set XDG_RUNTIME_DIR, or name one with --socket")
}

// socket is a unix socket that listens, and is removed with its listener. The lock beside it
// is held by the daemon that made it until it ends, which tells a socket in use from one
// that a dead daemon left.
type socket struct {
	net.Listener
	path string
	lock *os.File
	file os.FileInfo
}

// openSocket makes it. own says that the folder is toolhost's own, and gets the same access
// for others as the socket.
func openSocket(path string, mode fs.FileMode, group string, own bool) (*socket, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s has %d bytes, and at most %d are possible: name a shorter one with --socket", path, len(path), maxSocketPath)
	}
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	if err := prepareFolder(filepath.Dir(path), mode, own); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the socket %s: %w", path, err)
	}
	if _, err := socketAt(path); err != nil { // before there is a lock, whose file stays
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	s := &socket{path: path, lock: lock}
	if err := s.listen(mode, gid); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

func prepareFolder(dir string, mode fs.FileMode, own bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !own || mode&0o066 == 0 {
		return nil
	}
	return os.Chmod(dir, 0o711) // to pass, not to look around in
}

func lockSocket(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the socket %s: %w", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another daemon listens on %s: stop it, or name another socket with --socket", path)
		}
		return nil, fmt.Errorf("cannot lock the socket %s: %w", path, err)
	}
	return lock, nil
}

// listen makes the file with its final rights from the start.
func (s *socket) listen(mode fs.FileMode, gid int) (err error) {
	if err := removeStale(s.path); err != nil {
		return err
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		// The file is made with the mode of the socket's own inode (unix(7)).
		err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), uint32(defaultSocketMode)) })
		return errors.Join(err, failed)
	}}
	if s.Listener, err = config.Listen(context.Background(), "unix", s.path); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", s.path, err)
	}
	s.Listener.(*net.UnixListener).SetUnlinkOnClose(false) // release knows whose it is
	if s.file, err = os.Lstat(s.path); err != nil {
		return err
	}
	if gid >= 0 {
		if err := giveToGroup(s.path, gid); err != nil {
			return fmt.Errorf("cannot give the socket %s to its group: %w", s.path, err)
		}
	}
	return os.Chmod(s.path, mode)
}

// giveToGroup changes a file's group as a member of it may (chown(2)): one that has
// CAP_SETGID needs no CAP_CHOWN.
func giveToGroup(path string, gid int) error {
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and it ends with the goroutine
		if os.Geteuid() == 0 {
			_ = syscall.Setfsgid(gid)
		}
		failed <- os.Chown(path, -1, gid)
	}()
	return <-failed
}

// socketAt reports whether there is a socket at path; any other file there is an error.
func socketAt(path string) (there bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot look at the socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return false, fmt.Errorf("%s is not a socket: remove it, or name another path with --socket", path)
	}
	return true, nil
}

// removeStale removes the socket of a dead daemon, and nothing else.
func removeStale(path string) error {
	if there, err := socketAt(path); err != nil || !there {
		return err
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("something listens on %s already: stop it, or name another socket with --socket", path)
	}
	return os.Remove(path)
}

// release removes the socket's file, unless somebody has put another one there,
// and gives up the lock. The lock's file stays: removed, two daemons could each
// lock one.
func (s *socket) release() {
	if s.Listener != nil {
		_ = s.Close()
	}
	if now, err := os.Lstat(s.path); err == nil && s.file != nil && os.SameFile(now, s.file) {
		_ = os.Remove(s.path)
	}
	_ = s.lock.Close()
}
