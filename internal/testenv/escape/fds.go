package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFDs bounds the search for open descriptors.
const maxFDs = 1 << 16

// descriptors looks for what was left open for the tool, and for ways from there to the outside (CVE-2024-21626,
// CVE-2016-9962).
func descriptors(p *probe) {
	var extra []string
	for fd := range maxFDs {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		if fd > 2 && !slices.Contains(p.env.FDs, fd) && !ofRuntime(fd) {
			extra = append(extra, fmt.Sprintf("%d=%s", fd, target(fd)))
		}
		p.climbable(fd)
	}
	p.none("open beside 0 to 2", extra)
	for fd := range 3 {
		p.standard(fd)
	}
	p.workingDirectory()
	p.noDescriptorsOfOthers()
}

// ofRuntime says whether a descriptor is of the kinds that Go's own poller opens; neither leads anywhere.
func ofRuntime(fd int) bool {
	name := target(fd)
	return strings.HasPrefix(name, "anon_inode:[event") // eventpoll, eventfd
}

func target(fd int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return errnoName(err)
	}
	return name
}

// climbable adds facts about a descriptor that could be a way out: a folder, a device, a socket.
func (p *probe) climbable(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		p.holds(fmt.Sprintf("fd %d is not a folder", fd), false, "%s", target(fd))
		p.sameRoot(fmt.Sprintf("fd %d climbs to the root", fd), fd)
	case unix.S_IFBLK:
		p.holds(fmt.Sprintf("fd %d is not a block device", fd), false, "%s", target(fd))
	case unix.S_IFSOCK:
		allowed := slices.Contains(p.env.FDs, fd)
		p.holds(fmt.Sprintf("fd %d is not a socket", fd), allowed, "%s", target(fd))
	}
}

// sameRoot says that climbing from a folder ends in the root that all see.
func (p *probe) sameRoot(name string, dir int) {
	var root, top unix.Stat_t
	if err := unix.Stat("/", &root); err != nil {
		p.refused(name, err)
		return
	}
	up := strings.TrimSuffix(strings.Repeat("../", 48), "/")
	if err := unix.Fstatat(dir, up, &top, 0); err != nil {
		p.refused(name, err)
		return
	}
	p.holds(name, root.Dev == top.Dev && root.Ino == top.Ino, "root %d:%d, climbed to %d:%d", root.Dev, root.Ino, top.Dev, top.Ino)
}

// standard adds the facts of stdin, stdout or stderr.
func (p *probe) standard(fd int) {
	name := fmt.Sprintf("fd %d ", fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		p.info(name+"is closed", "%s", errnoName(err))
		return
	}
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	p.refused(name+"is a terminal", err)
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	p.info(name+"flags", "%#o %s %s", flags, target(fd), errnoName(err))
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if flags&unix.O_ACCMODE != unix.O_RDONLY {
			return // it was given for writing
		}
		p.refused(name+"opens anew for writing", openOnly(path, unix.O_WRONLY))
	case unix.S_IFIFO:
		p.info(name+"opens anew for reading", "%s", errnoName(openOnly(path, unix.O_RDONLY)))
	}
}

// workingDirectory says that the folder the tool starts in is inside the root.
func (p *probe) workingDirectory() {
	dir, err := unix.Getcwd(make([]byte, unix.PathMax))
	p.info("getcwd", "%d %s", dir, errnoName(err))
	name, err := os.Readlink("/proc/self/cwd")
	p.holds("working folder is reachable", err == nil && strings.HasPrefix(name, "/"), "%q %s", name, errnoName(err))
	fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.refused("open working folder", err)
		return
	}
	defer unix.Close(fd)
	p.sameRoot("working folder climbs to the root", fd)
}

// noDescriptorsOfOthers says that no process but the probe's shows what it has open.
func (p *probe) noDescriptorsOfOthers() {
	var open []string
	for _, pid := range visible() {
		if mine(pid) {
			continue
		}
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if name, err := os.Readlink(link); err == nil {
				open = append(open, link+"="+name)
			}
		}
		if _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil && len(links) == 0 {
			open = append(open, fmt.Sprintf("/proc/%d/fd", pid))
		}
	}
	p.none("descriptors of other processes", open)
}
