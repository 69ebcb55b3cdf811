package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

const (
	identities = "id"
	tempPrefix = "tmp-"

	// tempAge is more than any copying takes.
	tempAge = time.Hour

	noExec = 0x8 // ST_NOEXEC of statfs(2)
)

// Open opens the store in dir, or makes it. maxBytes bounds its copies all
// together, each counted in whole blocks of 4 KiB; 0 is DefaultMaxBytes. Copies
// in the making come on top.
//
// The folder must be ours and closed to other writers, no symbolic link, on a
// file system whose files can be executed, and nobody else may be able to
// replace it: each folder above is root's or ours, and either closed to other
// writers or sticky.
func Open(dir string, maxBytes int64) (*Store, error) {
	if maxBytes < 0 {
		return nil, fmt.Errorf("a store of %d bytes: give a positive bound, or 0 for %d", maxBytes, int64(DefaultMaxBytes))
	}
	maxBytes = cmp.Or(maxBytes, DefaultMaxBytes)
	dir, err := makeFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, maxBytes: maxBytes, now: time.Now, copied: func() {},
		hashes: map[identity]string{}, flights: map[identity]*flight{},
	}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	if err := checkExec(dir); err != nil {
		return nil, err
	}
	if err := s.makeIdentities(); err != nil {
		return nil, err
	}
	s.sweep()
	return s, nil
}

// makeFolder gives the folder's path without links, so that it stays the one
// that was checked.
func makeFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the store: %w; give an absolute path", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("cannot make the store %s: %w; choose a folder that you can write to", dir, text.Cause(err))
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", fmt.Errorf("cannot find the store %s: %w", dir, text.Cause(err))
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

// checkFolder wants a folder that nobody else can write or replace.
func checkFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at the store %s: %w", dir, text.Cause(err))
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("the store %s is a symbolic link: give the folder itself", dir)
	case !info.IsDir():
		return fmt.Errorf("the store %s is not a folder: remove it, or choose another", dir)
	case owner(info) != os.Geteuid():
		return fmt.Errorf("the store %s belongs to uid %d, not to us (uid %d): choose another folder", dir, owner(info), os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("the store %s can be written by others (mode %v): empty it and run chmod 700 on it, or choose another folder",
			dir, info.Mode().Perm())
	}
	return checkParents(dir)
}

func checkParents(dir string) error {
	root, err := os.Stat("/")
	if err != nil {
		return fmt.Errorf("cannot look at /: %w", text.Cause(err))
	}
	for at := dir; at != "/"; {
		at = filepath.Dir(at)
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("cannot look at %s, above the store %s: %w", at, dir, text.Cause(err))
		}
		if why := untrusted(info, owner(root)); why != "" {
			return fmt.Errorf("the store %s could be replaced by others, because %s %s: change that, or choose another folder", dir, at, why)
		}
	}
	return nil
}

// untrusted says why others can rename what is in a folder; empty if they
// can't. The owner of / is root, also where a user namespace shows it by
// another number.
func untrusted(folder fs.FileInfo, root int) string {
	if uid := owner(folder); uid != 0 && uid != os.Geteuid() && uid != root {
		return fmt.Sprintf("belongs to uid %d", uid)
	}
	mode := folder.Mode()
	writers := mode.Perm() & 0o022
	if privateGroup(folder) {
		writers &^= 0o020
	}
	if writers == 0 || mode&fs.ModeSticky != 0 {
		return ""
	}
	return fmt.Sprintf("can be written by others (mode %v)", mode.Perm())
}

// privateGroup knows a user's own group by its number: distributions that give
// each user a group make folders that this group can write.
func privateGroup(info fs.FileInfo) bool {
	gid := int(info.Sys().(*syscall.Stat_t).Gid)
	return gid == os.Getegid() && gid == os.Geteuid()
}

func checkExec(dir string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("cannot look at the file system of the store %s: %w", dir, err)
	}
	if st.Flags&noExec != 0 {
		return fmt.Errorf("nothing in the store %s can be executed: its file system is mounted noexec; choose a folder elsewhere", dir)
	}
	return nil
}

func (s *Store) makeIdentities() error {
	path := filepath.Join(s.dir, identities)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make %s: %w; choose a store that you can write to", path, text.Cause(err))
	}
	return checkFolder(path)
}

// sweep removes copies in the making whose makers are dead. What it cannot
// remove is for the next one.
func (s *Store) sweep() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && s.age(info.ModTime()) > tempAge {
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
		}
	}
}

// lock keeps other goroutines and processes from publishing, touching and
// removing copies until unlock is called.
func (s *Store) lock() (unlock func(), err error) {
	file, err := os.Open(s.dir)
	if err != nil {
		return nil, s.explain("lock a file", err)
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock the store %s: %w", s.dir, err), file.Close())
	}
	return func() {
		// Closing alone would not do: a child that was just forked has the
		// file open until it executes.
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		_ = file.Close()
	}, nil
}
