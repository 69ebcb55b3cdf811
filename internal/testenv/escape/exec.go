package escape

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// executables says that no program that others run can be changed: the launcher's (CVE-2019-5736), the tool's, the system's.
func executables(p *probe) {
	p.ownExecutable()
	for _, pid := range append(ancestors(), 1) {
		path := fmt.Sprintf("/proc/%d/exe", pid)
		p.refused(fmt.Sprintf("write to exe of %d", pid), openOnly(path, unix.O_WRONLY))
		p.refused(fmt.Sprintf("read exe of %d", pid), openOnly(path, unix.O_RDONLY))
		p.refused(fmt.Sprintf("write to exe of %d by its path descriptor", pid), reopen(path, unix.O_WRONLY))
	}
	var open []string
	count := 0
	for _, pattern := range []string{"/usr/bin/*", "/usr/sbin/*", "/bin/*", "/lib64/*", "/lib/*-linux-gnu/lib*.so*", "/usr/lib/*-linux-gnu/ld-*", "/usr/local/bin/*", "/usr/libexec/*"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			count++
			if p.mayWriteTo(file) == nil {
				open = append(open, file)
			}
		}
	}
	p.none("writable programs and libraries", open)
	p.info("programs and libraries", "%d", count)
	for _, path := range []string{"/bin/sh", "/usr/bin/env", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/etc/ld.so.preload", "/etc/ld.so.cache"} {
		p.refused("write to "+path, p.mayWriteTo(path))
	}
	p.executeCopy()
}

func (p *probe) ownExecutable() {
	const self = "/proc/self/exe"
	p.refused("write to own executable", openOnly(self, unix.O_WRONLY))
	name, err := os.Readlink(self)
	p.info("own executable", "%s, sealed: %t %s", name, sealed(self), errnoName(err))
}

// reopen opens a path for its place only, then the place for use.
func reopen(path string, flags int) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return openOnly(fmt.Sprintf("/proc/self/fd/%d", fd), flags)
}

// executeCopy says that a setuid bit on a file of the tool's own gives nothing, because the mount takes it away.
func (p *probe) executeCopy() {
	dir, remove := p.scratch()
	defer remove()
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o755); err != nil {
		p.info("own setuid file", "nothing can be written: %s", errnoName(err))
		return
	}
	err := unix.Chmod(path, 0o6755)
	p.holds("own setuid file", err != nil || noSuid(path), "%s", errnoName(err))
}
