package escape

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxDepth = 4
	// maxFolders bounds the walk where it only asks, which is the whole machine.
	maxFolders = 4000
	maxFiles   = 4000
)

// writable maps what can be written. In a sandbox it makes a file in every folder; outside it only asks for access.
func writable(p *probe) {
	var open, link, files []string
	seen, asked := 0, 0
	_ = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (path == "/proc" || p.env.mayWrite(path) || strings.Count(path, "/") > maxDepth || !p.boxed && seen > maxFolders):
			return fs.SkipDir
		case d.IsDir():
			seen++
			if p.create(path) == nil {
				open = append(open, path)
			}
		case d.Type().IsRegular() && asked < maxFiles:
			asked++
			if unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil && !deviceNode(path) {
				files = append(files, path)
			}
		case d.Type()&fs.ModeSocket != 0 && !p.env.allowed(filepath.Dir(path)):
			link = append(link, path)
		}
		return nil
	})
	p.none("writable folders", open)
	p.none("writable files", files)
	p.none("sockets", link)
	p.info("looked at", "%d folders, %d files", seen, asked)
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/dev", "/proc", "/proc/self", "/var/tmp", "/run", "/lib64"} {
		if !p.env.mayWrite(dir) {
			p.refused("create in "+dir, p.create(dir))
		}
	}
	p.replace()
	p.allowedFolders()
}

// create makes a file and removes it again, or asks whether it could.
func (p *probe) create(dir string) error {
	if !p.boxed {
		return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS)
	}
	f, err := os.CreateTemp(dir, ".escape-")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// replace tries what changes a folder or a file without opening it. It leaves all as it is even where it is allowed to.
func (p *probe) replace() {
	if !p.boxed {
		p.info("replace", "only in a sandbox")
		return
	}
	for _, path := range []string{"/usr/bin", "/etc", "/etc/passwd", "/", "/dev/null"} {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		p.refused("chmod "+path, unix.Chmod(path, st.Mode&0o7777))
		if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
			// Only who may remove it is told that it is not empty.
			err := unix.Rmdir(path)
			p.holds("rmdir "+path, err != unix.ENOTEMPTY, "%s", errnoName(err))
		}
		p.refused("set xattr of "+path, unix.Setxattr(path, "user.escape", nil, 0))
		_ = unix.Removexattr(path, "user.escape")
	}
}

// allowedFolders says that what may be written carries no rights and no devices.
func (p *probe) allowedFolders() {
	for _, dir := range p.env.writable() {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) != nil {
			continue
		}
		const want = unix.ST_NOSUID | unix.ST_NODEV
		p.holds("nosuid, nodev "+dir, st.Flags&want == want, "%#x", st.Flags)
		p.info("create in "+dir, "%s", errnoName(p.create(dir)))
	}
}
