package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/text"
)

// runtimeDir is a folder of one supervisor's own. It is locked for as long as
// its owner lives, so that the next one can tell what a dead one has left.
type runtimeDir struct {
	path string
	lock *os.File
}

const (
	lockName = "lock"
	// dirPrefix begins the names of these folders, and digits follow it. Others in the same
	// place, such as a worker's, must outlive their owners.
	dirPrefix = "h"
)

func openRuntimeDir(base string) (*runtimeDir, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the runtime folder %s: %w; name a folder that you can write to (RuntimeDir, dirs.runtime in toolhost.yaml)", base, text.Cause(err))
	}
	if err := ownAlone(base); err != nil {
		return nil, err
	}
	sweepRuntimeDirs(base)
	var err error
	for range maxOwnTries {
		var path string
		if path, err = os.MkdirTemp(base, dirPrefix); err != nil {
			return nil, fmt.Errorf("cannot make a folder in %s: %w; name a folder that you can write to (RuntimeDir, dirs.runtime in toolhost.yaml)", base, text.Cause(err))
		}
		var lock *os.File
		if lock, err = lockDir(path); err == nil {
			return &runtimeDir{path: path, lock: lock}, nil
		}
		_ = os.RemoveAll(path) // another host that starts took it for a dead one's
	}
	return nil, fmt.Errorf("cannot lock a folder in %s: %w", base, err)
}

// maxOwnTries bounds how often other hosts may be faster.
const maxOwnTries = 100

// ownAlone refuses a folder that somebody else made, or may write to: it may
// lie in one that is open to all.
func ownAlone(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("cannot look at the runtime folder %s: %w", path, text.Cause(err))
	}
	st := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("the runtime folder %s is not a folder: remove it, or name another one (RuntimeDir, dirs.runtime in toolhost.yaml)", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("the runtime folder %s belongs to uid %d: remove it, or name another one (RuntimeDir, dirs.runtime in toolhost.yaml)", path, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("the runtime folder %s can be written to by others (mode %#o): run chmod go-w on it", path, info.Mode().Perm())
	}
	return nil
}

// usersDir is where all hosts of a user agree on who has which user for calls,
// whatever their environment.
func usersDir() (string, error) {
	uid := os.Geteuid()
	var base string
	session := fmt.Sprintf("/run/user/%d", uid)
	switch {
	case uid == 0:
		base = "/run/toolhost"
	case ownAlone(session) == nil:
		base = filepath.Join(session, "toolhost")
	default:
		base = fmt.Sprintf("/tmp/toolhost-%d", uid)
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the runtime folder %s: %w", base, text.Cause(err))
	}
	return filepath.Join(base, "users"), ownAlone(base)
}

// lockDir takes the folder's lock. It fails at once if somebody else has it, or
// had it and has removed the folder.
func lockDir(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, err
	}
	if err := stillAt(lock); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// stillAt fails if a file is no longer where it was opened.
func stillAt(file *os.File) error {
	mine, err := file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(file.Name())
	if err == nil && !os.SameFile(mine, there) {
		err = fmt.Errorf("%s has been replaced", file.Name())
	}
	return err
}

// sweepRuntimeDirs removes the folders whose owners are dead.
func sweepRuntimeDirs(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, entry := range entries {
		number, ours := strings.CutPrefix(entry.Name(), dirPrefix)
		if !ours || strings.Trim(number, "0123456789") != "" {
			continue
		}
		path := filepath.Join(base, entry.Name())
		if _, err := os.Stat(filepath.Join(path, lockName)); err != nil {
			continue // not locked yet
		}
		if lock, err := lockDir(path); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

func (d *runtimeDir) close() error {
	err := os.RemoveAll(d.path)
	_ = d.lock.Close()
	return err
}
