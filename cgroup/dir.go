package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// dir is an open cgroup directory. Files are reached relative to it, so that
// neither mounts nor renames above matter. It is not safe to close while in use.
type dir struct {
	fd   int
	path string // for messages and receipts only
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openDir(path string) (*dir, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, dirFlags, 0) })
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return &dir{fd, path}, nil
}

func (d *dir) sub(name string) (*dir, error) {
	p := d.join(name)
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, dirFlags, 0) })
	if err != nil {
		return nil, pathError("open", p, err)
	}
	return &dir{fd, p}, nil
}

func (d *dir) join(name string) string { return strings.TrimSuffix(d.path, "/") + "/" + name }

func (d *dir) close() {
	if d != nil && d.fd >= 0 {
		_ = unix.Close(d.fd)
		d.fd = -1
	}
}

func (d *dir) mkdir(name string, mode uint32) error {
	return pathError("mkdir", d.join(name), unix.Mkdirat(d.fd, name, mode))
}

func (d *dir) rmdir(name string) error {
	return pathError("rmdir", d.join(name), unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR))
}

// openFile opens a control file close-on-exec.
func (d *dir) openFile(name string, flags int) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, flags|unix.O_CLOEXEC, 0) })
	return fd, pathError("open", d.join(name), err)
}

// write sets a control file in one write(2): the kernel parses each on its own.
func (d *dir) write(name, value string) error {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err == nil {
		_, err = retry(func() (int, error) { return unix.Write(fd, []byte(value)) })
		_ = unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q to %s: %w", value, d.join(name), err)
	}
	return nil
}

// read returns a control file's content.
func (d *dir) read(name string) (string, error) {
	fd, err := d.openFile(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	s, err := readAll(fd)
	return s, pathError("read", d.join(name), err)
}

const readChunkBytes = 4096

// maxFileBytes bounds a control file: cgroup.procs at PID_MAX_LIMIT is 32 MiB.
const maxFileBytes = 64 << 20

// readAll reads an open control file from its beginning; kernfs then renders
// it afresh and takes pending poll events of this fd as seen.
func readAll(fd int) (string, error) {
	var buf [readChunkBytes]byte
	n, err := pread(fd, buf[:], 0)
	// A listing ends a read early where its next line doesn't fit, so that
	// only a clearly short read is the whole file.
	if err != nil || n < readChunkBytes/2 {
		return string(buf[:n]), err
	}
	all := append([]byte(nil), buf[:n]...)
	for len(all) < maxFileBytes {
		n, err := pread(fd, buf[:], int64(len(all)))
		if err != nil || n == 0 {
			return string(all), err
		}
		all = append(all, buf[:n]...)
	}
	return "", fmt.Errorf("bug: control file over %d bytes", maxFileBytes)
}

func pread(fd int, p []byte, off int64) (int, error) {
	n, err := retry(func() (int, error) { return unix.Pread(fd, p, off) })
	return max(n, 0), err
}

// names lists the directory's entries; dirs picks folders or files.
func (d *dir) names(dirs bool) ([]string, error) {
	fd, err := d.openFile(".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 8192)
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil || n == 0 {
			return names, pathError("readdir", d.path, err)
		}
		names = appendEntries(names, buf[:n], dirs)
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// gone tells that the cgroup, or its file, was removed.
func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) }
