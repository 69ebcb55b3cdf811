package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Machine is all that loading sees of the system.
type Machine struct {
	// Files is the file system from its root. Info of its files should have a
	// *syscall.Stat_t as Sys, by which their owner is known.
	Files fs.FS
	// Dir is the working directory, Home the user's home; both absolute. Home
	// may be empty.
	Dir, Home string
	// UID is the effective user.
	UID int
	// Environ holds KEY=VALUE entries.
	Environ []string
}

// ThisMachine is the one that the program runs on.
func ThisMachine() (Machine, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Machine{}, fmt.Errorf("cannot find the working directory: %w: change to a folder that exists", err)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		home = ""
	}
	return Machine{Files: os.DirFS("/"), Dir: dir, Home: home, UID: os.Geteuid(), Environ: os.Environ()}, nil
}

func (m Machine) lookup(name string) (value string, ok bool) {
	for _, entry := range m.Environ {
		if key, value, found := strings.Cut(entry, "="); found && key == name {
			return value, true
		}
	}
	return "", false
}

// inFiles turns an absolute path into one of fs.FS.
func inFiles(absolute string) string {
	return strings.TrimPrefix(path.Join("/", absolute), "/")
}

func (m Machine) stat(absolute string) (fs.FileInfo, error) {
	return fs.Stat(m.Files, cmp.Or(inFiles(absolute), "."))
}

// isPack says whether a path is what toolsdk pack has written: a folder with a
// manifest, or a tar (POSIX ustar), executable or not.
func (m Machine) isPack(absolute string, info fs.FileInfo) bool {
	if info.IsDir() {
		inside, err := m.stat(path.Join(absolute, "manifest.json"))
		return err == nil && inside.Mode().IsRegular()
	}
	if !info.Mode().IsRegular() {
		return false
	}
	const magic, at = "ustar", 257
	head, _, err := m.read(absolute, at+int64(len(magic)))
	return err == nil && len(head) >= at+len(magic) && string(head[at:at+len(magic)]) == magic
}

// read reads a plain file, at most limit bytes and one more. The information is
// that of the file that was read.
func (m Machine) read(absolute string, limit int64) ([]byte, fs.FileInfo, error) {
	// Looked at first, for opening a pipe would wait for its writer.
	if info, err := m.stat(absolute); err != nil {
		return nil, nil, reason(err)
	} else if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a plain file")
	}
	f, err := m.Files.Open(inFiles(absolute))
	if err != nil {
		return nil, nil, reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, reason(err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, reason(err)
	}
	return raw, info, nil
}

// notThere: ENOTDIR, too, says that a file does not exist.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason leaves the path out of an error, for the message has it.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		return fs.ErrPermission
	}
	return err
}

// blockDevice takes the number of a block device apart, as makedev(3) put it
// together.
func blockDevice(info fs.FileInfo) (major, minor uint64, ok bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
		return 0, 0, false
	}
	dev := uint64(stat.Rdev)
	return dev>>8&0xfff | dev>>32&^0xfff, dev&0xff | dev>>12&^0xff, true
}
