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

// BackupSuffix is added to the name of a file for its copy from before the change.
const BackupSuffix = ".before-toolhost"

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
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
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
		backup = f.Path + BackupSuffix
		if err := f.put(backup, f.Text); err != nil {
			return "", fmt.Errorf("cannot keep a copy: %w", err)
		}
	}
	return backup, f.put(f.Path, text)
}

func (f File) put(path string, text []byte) error {
	o := atomicfile.Options{Like: f.info}
	if f.info != nil {
		o.Mode = f.info.Mode().Perm()
	}
	return atomicfile.Write(path, text, o)
}
