// Package atomicfile puts a file in its place whole: a reader finds the content from before or the new one, never a part, also after a crash.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Options say how a file is put in its place.
type Options struct {
	// Mode holds the permissions, whatever the umask; 0 is 0600.
	Mode fs.FileMode
	// Like is the file or folder whose owner and group the file gets; nil leaves it to the process's own.
	Like fs.FileInfo
	// New fails with fs.ErrExist where there is a file already. Where the file system has no hard links, one that
	// another process makes at the same time is replaced.
	New bool
	// Unsynced does not wait for the disk: after a crash of the machine the file may be empty, or the old one.
	Unsynced bool
}

// Write puts content in the place of the file at path. A symbolic link there is replaced, not followed.
func Write(path string, content []byte, o Options) error {
	return Fill(path, o, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Fill is Write for content that fill writes. If fill fails, the file stays as it was.
func Fill(path string, o Options, fill func(io.Writer) error) error {
	dir := filepath.Dir(path)
	made, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	if err := errors.Join(o.finish(made, fill), made.Close()); err != nil {
		return err
	}
	if err := o.name(made.Name(), path); err != nil || o.Unsynced {
		return err
	}
	return syncDir(dir)
}

// finish makes the file what it will be, under a name that nobody looks for.
func (o Options) finish(made *os.File, fill func(io.Writer) error) error {
	if err := fill(made); err != nil {
		return err
	}
	if err := o.own(made); err != nil {
		return err
	}
	if o.Mode != 0 { // CreateTemp gives 0600
		if err := made.Chmod(o.Mode.Perm()); err != nil {
			return err
		}
	}
	if o.Unsynced {
		return nil
	}
	return made.Sync()
}

// own asks for a change only where there is one: it takes a privilege.
func (o Options) own(made *os.File) error {
	if o.Like == nil {
		return nil
	}
	info, err := made.Stat()
	if err != nil {
		return err
	}
	has, like := info.Sys().(*syscall.Stat_t), o.Like.Sys().(*syscall.Stat_t)
	if has.Uid == like.Uid && has.Gid == like.Gid {
		return nil
	}
	return made.Chown(int(like.Uid), int(like.Gid))
}

func (o Options) name(from, to string) error {
	if !o.New {
		return os.Rename(from, to)
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, missing := os.Lstat(to); !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// Remove removes the file at path for certain, if there is one.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
