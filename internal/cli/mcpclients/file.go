package mcpclients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolhost/toolhost/internal/atomicfile"
)

// maxFileBytes bounds a client's file: Claude Code keeps its history in it, too.
const maxFileBytes = 64 << 20

// maxLinks is how many links to one another are followed, as many as Linux does.
const maxLinks = 40

// backupSuffix is added to the name of a file for its copy from before the change; -2
// and so on follow where there is another one already.
const backupSuffix = ".before-toolhost"

// File is a client's file as it was read.
type File struct {
	// Path is where it is, links followed.
	Path string
	// Text is its content. Missing says that the file does not exist yet.
	Text    []byte
	Missing bool

	info fs.FileInfo
}

// Read reads a client's file. One that does not exist is empty.
func Read(path string) (File, error) {
	path, err := followed(path)
	if err != nil {
		return File{Path: path}, err
	}
	f := File{Path: path}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f.Missing = true
		return f, nil
	}
	if err != nil {
		return f, err
	}
	defer file.Close()
	if f.info, err = file.Stat(); err != nil {
		return f, err
	}
	if !f.info.Mode().IsRegular() {
		return f, fmt.Errorf("%s is not a regular file", path)
	}
	if f.Text, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1)); err != nil {
		return f, err
	}
	if len(f.Text) > maxFileBytes {
		return f, fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	return f, nil
}

// followed is where the links at path lead, be there a file or not yet.
func followed(path string) (string, error) {
	for range maxLinks {
		if at, err := filepath.EvalSymlinks(path); err == nil {
			return at, nil
		}
		target, err := os.Readlink(path)
		if err != nil { // no link
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if _, err := os.Stat(filepath.Dir(target)); err != nil {
			return path, fmt.Errorf("%s is a link to %s, whose folder cannot be read: make the folder, or remove the link: %w", path, target, err)
		}
		path = target
	}
	return path, nil // opening it fails
}

// Replace puts text in the place of what was read, at once and with the file's mode and
// owner, and keeps what was there beside it, as backup. It fails if the file has been
// changed in the meantime.
func (f File) Replace(text []byte) (backup string, err error) {
	now, err := Read(f.Path)
	if err != nil {
		return "", err
	}
	if now.Missing != f.Missing || !bytes.Equal(now.Text, f.Text) {
		return "", fmt.Errorf("%s was changed by another program meanwhile: try again", f.Path)
	}
	if !f.Missing {
		if backup, err = f.keep(); err != nil {
			return "", fmt.Errorf("cannot keep a copy: %w", err)
		}
	}
	return backup, f.put(f.Path, text, false)
}

// keep copies what was read, unless there is a copy already. No file is overwritten: the
// first copy is that from before toolhost.
func (f File) keep() (backup string, err error) {
	backup = f.Path + backupSuffix
	for n := 2; ; n++ {
		if err := f.put(backup, f.Text, true); !errors.Is(err, fs.ErrExist) {
			return backup, err
		}
		if kept, err := Read(backup); err == nil && bytes.Equal(kept.Text, f.Text) {
			return backup, nil
		}
		backup = fmt.Sprintf("%s%s-%d", f.Path, backupSuffix, n)
	}
}

func (f File) put(path string, text []byte, fresh bool) error {
	o := atomicfile.Options{Like: f.info, New: fresh}
	if f.info != nil {
		o.Mode = f.info.Mode().Perm()
	}
	return atomicfile.Write(path, text, o)
}
