package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	typeDir     = 0o040000
	typeFile    = 0o100000
	typeSymlink = 0o120000
)

// archive writes a cpio archive in the kernel's newc format (Documentation/driver-api/early-userspace/buffer-format.rst).
// Everything in it belongs to root. Missing parent folders are made; errors are kept for close.
type archive struct {
	out     *bufio.Writer
	dirs    map[string]bool
	inode   int
	written int64
	err     error
}

func newArchive(w io.Writer) *archive {
	return &archive{out: bufio.NewWriterSize(w, 1<<20), dirs: map[string]bool{"": true}}
}

func (a *archive) dir(name string, perm fs.FileMode) {
	if name = clean(name); !a.dirs[name] {
		a.dirs[name] = true
		a.dir(path.Dir(name), 0o755)
		a.entry(name, typeDir|uint32(perm.Perm()), 0, strings.NewReader(""))
	}
}

func (a *archive) symlink(name, target string) {
	a.parent(name)
	a.entry(clean(name), typeSymlink|0o777, int64(len(target)), strings.NewReader(target))
}

func (a *archive) bytes(name string, perm fs.FileMode, data string) {
	a.parent(name)
	a.entry(clean(name), typeFile|uint32(perm.Perm()), int64(len(data)), strings.NewReader(data))
}

// file copies a file of the host.
func (a *archive) file(name, source string, perm fs.FileMode) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", source)
	}
	a.parent(name)
	a.entry(clean(name), typeFile|uint32(perm.Perm()), info.Size(), f)
	return a.err
}

// close ends the archive and returns the first error.
func (a *archive) close() error {
	a.inode = 0
	a.entry("TRAILER!!!", 0, 0, strings.NewReader(""))
	if a.err == nil {
		a.err = a.out.Flush()
	}
	return a.err
}

func (a *archive) parent(name string) { a.dir(path.Dir(clean(name)), 0o755) }

func (a *archive) entry(name string, mode uint32, size int64, content io.Reader) {
	a.inode++
	links := 1
	// Fields: magic, inode, mode, uid, gid, links, mtime, size, device (2), rdev (2), length of the name, checksum.
	a.copy(strings.NewReader(fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)), -1)
	a.pad()
	a.copy(content, size)
	a.pad()
}

func (a *archive) copy(r io.Reader, want int64) {
	if a.err != nil {
		return
	}
	n, err := io.Copy(a.out, r)
	if err == nil && want >= 0 && n != want {
		err = fmt.Errorf("a file changed from %d to %d bytes while it was packed", want, n)
	}
	a.written, a.err = a.written+n, err
}

// pad fills up to a multiple of four bytes.
func (a *archive) pad() {
	if rest := a.written % 4; rest != 0 {
		a.copy(strings.NewReader("\x00\x00\x00"[:4-rest]), -1)
	}
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
