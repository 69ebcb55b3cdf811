package escape

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
)

// mountPoint is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mountPoint struct {
	root, path, options string
	propagation         string // "shared:1 master:2"
	fs, source          string
}

func (m mountPoint) has(option string) bool {
	return slices.Contains(strings.Split(m.options, ","), option)
}

func parseMount(line string) (mountPoint, bool) {
	front, back, ok := strings.Cut(line, " - ")
	before, after := strings.Fields(front), strings.Fields(back)
	if !ok || len(before) < 6 || len(after) < 2 {
		return mountPoint{}, false
	}
	return mountPoint{text.MountPath(before[3]), text.MountPath(before[4]), before[5], strings.Join(before[6:], " "), after[0], text.MountPath(after[1])}, true
}

func mountTable() ([]mountPoint, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	var all []mountPoint
	for line := range strings.Lines(string(b)) {
		if m, ok := parseMount(line); ok {
			all = append(all, m)
		}
	}
	return all, err
}

// mounts says that the mounts are as tight as they should be, and cannot be changed or left.
func mounts(p *probe) {
	table, err := mountTable()
	p.info("mounts", "%d %s", len(table), errnoName(err))
	for _, m := range table {
		p.mount(m)
	}
	p.rootReadOnly()
	p.change()
	p.newFileSystems()
	p.newAPI()
	p.nodes()
	p.handles()
	p.climb(table)
	p.sizes()
}

// mount adds a fact about one mount: all that is wrong with it.
func (p *probe) mount(m mountPoint) {
	var wrong []string
	if !m.has("nosuid") {
		wrong = append(wrong, "suid")
	}
	if !m.has("nodev") && !deviceNode(m.path) {
		wrong = append(wrong, "dev")
	}
	if m.propagation != "" && m.propagation != "unbindable" {
		wrong = append(wrong, m.propagation)
	}
	if ofHost(m) && !p.mayShowHost(m.path) {
		wrong = append(wrong, "shows the host's "+m.source+":"+m.root)
	}
	if ofHost(m) && m.has("rw") && !p.env.mayWrite(m.path) && !deviceNode(m.path) {
		wrong = append(wrong, "host file system, writable")
	}
	p.holds("mount "+m.path, len(wrong) == 0, "%s; %s of %s %s", strings.Join(wrong, ", "), m.options, m.fs, m.source)
}

// deviceNode says whether a mount is one of the harmless devices, or terminals. /dev/null also covers files elsewhere.
func deviceNode(path string) bool {
	var st unix.Stat_t
	if path == "/dev/pts" {
		return true
	}
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || unix.Major(st.Rdev) != 1 {
		return false
	}
	return slices.Contains([]uint32{3, 5, 7, 8, 9}, unix.Minor(st.Rdev)) // null, zero, full, random, urandom
}

// ofHost says whether a mount shows a file system that was there before the sandbox: one of a disk, or part of another.
func ofHost(m mountPoint) bool {
	if m.fs == "tmpfs" && m.root != "/" {
		return m.path != "/" && !below(m.path, "/proc") && !below(m.path, "/dev")
	}
	switch m.fs {
	case "proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "ramfs":
		return false
	}
	return true
}

// mayShowHost says whether the host's files belong at path.
func (p *probe) mayShowHost(target string) bool {
	runtime := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"}
	for _, dir := range append(runtime, p.env.Bound...) {
		if below(target, dir) {
			return true
		}
	}
	return p.env.mayWrite(target)
}

func (p *probe) rootReadOnly() {
	var st unix.Statfs_t
	err := unix.Statfs("/", &st)
	p.holds("root is read-only", err == nil && st.Flags&unix.ST_RDONLY != 0, "%#x", st.Flags)
	p.refused("write to root", unix.Faccessat(unix.AT_FDCWD, "/", unix.W_OK, unix.AT_EACCESS))
}

// inMounts runs a script where mounting harms nobody: a sandbox, or else a mount namespace of the child's own. The steps
// given count from 1.
func (p *probe) inMounts(a *arena, steps ...step) outcome {
	if p.boxed {
		return attempt(steps...)
	}
	const private = 2 // steps before
	for i := range steps {
		if steps[i].result != 0 {
			steps[i].result += private
		}
	}
	return attempt(append([]step{
		call(unix.SYS_UNSHARE, unix.CLONE_NEWNS).orEnd(),
		call(unix.SYS_MOUNT, 0, a.str("/"), 0, unix.MS_REC|unix.MS_PRIVATE, 0).orEnd(),
	}, steps...)...)
}

// change tries to loosen, cover or remove what is mounted.
func (p *probe) change() {
	a := newArena()
	defer a.free()
	mount := func(source, target, fs string, flags uintptr) step {
		return call(unix.SYS_MOUNT, a.str(source), a.str(target), a.str(fs), flags, 0)
	}
	for _, target := range []string{"/", "/usr", "/proc", "/proc/sys", "/dev", "/tmp", "/etc"} {
		p.refused("remount rw "+target, p.inMounts(a, mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND)).err())
		p.refused("umount "+target, p.inMounts(a, call(unix.SYS_UMOUNT2, a.str(target), unix.MNT_DETACH)).err())
	}
	for _, target := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger", "/proc/irq", "/proc/acpi", "/workspace", "/dev/shm", "/dev/null"} {
		p.refused("umount "+target, p.inMounts(a, call(unix.SYS_UMOUNT2, a.str(target), unix.MNT_DETACH)).err())
	}
	p.refused("bind /tmp over /etc", p.inMounts(a, mount("/tmp", "/etc", "", unix.MS_BIND)).err())
	p.refused("bind / over /tmp", p.inMounts(a, mount("/", "/tmp", "", unix.MS_BIND|unix.MS_REC)).err())
	p.refused("move /proc to /tmp", p.inMounts(a, mount("/proc", "/tmp", "", unix.MS_MOVE)).err())
	p.refused("share /", p.inMounts(a, mount("", "/", "", unix.MS_REC|unix.MS_SHARED)).err())
	dot := a.str(".")
	p.refused("pivot_root", p.inMounts(a, call(unix.SYS_CHDIR, a.str("/tmp")), mount("/tmp", "/tmp", "", unix.MS_BIND), call(unix.SYS_PIVOT_ROOT, dot, dot)).err())
}

// newFileSystems tries to mount what would show more of the kernel, or bring files with rights of their own.
func (p *probe) newFileSystems() {
	a := newArena()
	defer a.free()
	dir, remove := p.scratch()
	defer remove()
	dir = cmp.Or(dir, "/tmp")
	list := strings.Fields("tmpfs ramfs proc sysfs devtmpfs devpts mqueue cgroup2")
	if p.boxed { // elsewhere these might load a module
		list = append(list, strings.Fields("overlay bpf debugfs tracefs securityfs fuse binfmt_misc configfs pstore nfs ext4")...)
	}
	options := map[string]string{"devpts": "newinstance", "overlay": "lowerdir=/usr:/etc"}
	for _, fs := range list {
		o := p.inMounts(a, call(unix.SYS_MOUNT, a.str("none"), a.str(dir), a.str(fs), 0, a.str(options[fs])))
		p.refused("mount "+fs, o.err())
	}
}

// newAPI tries the same by descriptors.
func (p *probe) newAPI() {
	a := newArena()
	defer a.free()
	cwd, empty := minus(-unix.AT_FDCWD), a.str("")
	// struct mount_attr: attr_set, attr_clr, propagation, userns_fd.
	loose := a.words(0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, 0, 0)
	for _, fs := range []string{"tmpfs", "proc", "sysfs", "cgroup2"} {
		o := p.inMounts(a,
			call(unix.SYS_FSOPEN, a.str(fs), 0).orEnd(),
			call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).with(1, 0).orEnd(),
			call(unix.SYS_FSMOUNT, 0, 0, 0).with(1, 0))
		p.refused("fsmount "+fs, o.err())
	}
	p.refused("open_tree of /", p.inMounts(a, call(unix.SYS_OPEN_TREE, cwd, a.str("/"), unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)).err())
	p.refused("mount_setattr of /", p.inMounts(a, call(unix.SYS_MOUNT_SETATTR, cwd, a.str("/"), unix.AT_RECURSIVE, loose, 32)).err())
	o := p.inMounts(a,
		call(unix.SYS_OPEN_TREE, cwd, a.str("/usr"), unix.OPEN_TREE_CLONE).orEnd(),
		call(unix.SYS_MOVE_MOUNT, 0, empty, cwd, a.str("/tmp"), unix.MOVE_MOUNT_F_EMPTY_PATH).with(1, 0))
	p.refused("move_mount of /usr to /tmp", o.err())
	p.refused("fspick /", p.inMounts(a, call(unix.SYS_FSPICK, cwd, a.str("/"), 0)).err())
}

// nodes tries to make devices: the disk under /, and memory.
func (p *probe) nodes() {
	dir, remove := p.scratch()
	defer remove()
	if dir == "" {
		p.info("nodes", "nothing can be written")
		return
	}
	var root unix.Stat_t
	_ = unix.Stat("/", &root)
	for name, node := range map[string]struct {
		mode uint32
		dev  uint64
	}{
		"root's disk": {unix.S_IFBLK, root.Dev}, "disk 254:0": {unix.S_IFBLK, unix.Mkdev(254, 0)}, "loop 7:0": {unix.S_IFBLK, unix.Mkdev(7, 0)},
		"mem": {unix.S_IFCHR, unix.Mkdev(1, 1)}, "kmsg": {unix.S_IFCHR, unix.Mkdev(1, 11)}, "tty": {unix.S_IFCHR, unix.Mkdev(5, 0)}, "null": {unix.S_IFCHR, unix.Mkdev(1, 3)},
	} {
		path := filepath.Join(dir, "node")
		p.refused("make node of "+name, makeNode(path, node.mode, node.dev))
		_ = os.Remove(path)
	}
	p.info("make a whiteout", "%s", errnoName(makeNode(filepath.Join(dir, "whiteout"), unix.S_IFCHR, 0)))
}

func makeNode(path string, mode uint32, dev uint64) error {
	a := newArena()
	defer a.free()
	return attempt(call(unix.SYS_MKNODAT, minus(-unix.AT_FDCWD), a.str(path), uintptr(mode|0o600), uintptr(dev))).err()
}

// handles opens files by number, past every path, in each file system that is in reach.
func (p *probe) handles() {
	for _, at := range []string{"/", "/usr", "/etc", "/proc/self/exe"} {
		a := newArena()
		const mountID, space = 0, 128
		cwd, path := minus(-unix.AT_FDCWD), a.str(at)
		open := call(unix.SYS_OPENAT, cwd, path, unix.O_RDONLY).orEnd()
		// struct file_handle: size, type, bytes; here inode 2, generation 0, as ext4 has its root.
		const ext4 = 8 | 1<<32
		p.refused("open root by handle through "+at, attempt(open, call(unix.SYS_OPEN_BY_HANDLE_AT, 0, a.words(ext4, 2), 0).with(1, 0)).err())
		own := a.words(append([]uint64{space}, make([]uint64, space/8)...)...)
		o := attempt(open, call(unix.SYS_NAME_TO_HANDLE_AT, cwd, path, own, a.words(mountID), 0).orEnd(), call(unix.SYS_OPEN_BY_HANDLE_AT, 0, own, 0).with(1, 0))
		p.refused("open by its own handle "+at, o.err())
		a.free()
	}
}

// climb tries to get above the root: by "..", from every mount point, and by a second chroot.
func (p *probe) climb(table []mountPoint) {
	dirs := append([]string{"/", "/proc/self/cwd", "/proc/self/root", "/proc/thread-self/root"}, p.env.writable()...)
	for _, m := range table {
		dirs = append(dirs, m.path)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		p.sameRoot("climb from "+dir, fd)
		var up, parent unix.Stat_t
		if unix.Fstatat(fd, "..", &up, 0) == nil && unix.Stat(path.Dir(dir), &parent) == nil && !strings.HasPrefix(dir, "/proc/") {
			p.holds("parent of "+dir, up.Dev == parent.Dev && up.Ino == parent.Ino, "%d:%d, by path %d:%d", up.Dev, up.Ino, parent.Dev, parent.Ino)
		}
		unix.Close(fd)
	}
	a := newArena()
	defer a.free()
	dir, remove := p.scratch()
	defer remove()
	o := attempt(
		call(unix.SYS_OPENAT, minus(-unix.AT_FDCWD), a.str("/"), unix.O_RDONLY|unix.O_DIRECTORY).orEnd(),
		call(unix.SYS_CHROOT, a.str(dir)).orEnd(),
		call(unix.SYS_FCHDIR, 0).with(1, 0).orEnd(),
		call(unix.SYS_CHDIR, a.str("../../../../../../..")).orEnd(),
		call(unix.SYS_CHROOT, a.str(".")))
	p.refused("chroot, and climb out", o.err())
}

// sizes says that every tmpfs has an end, in bytes and in inodes.
func (p *probe) sizes() {
	limit := p.env.MaxTmpfsBytes
	var memory unix.Sysinfo_t
	if limit == 0 && unix.Sysinfo(&memory) == nil {
		limit = uint64(memory.Totalram)*uint64(memory.Unit)*15/32 + 1 // just under the default of half
	}
	for _, dir := range p.env.writable() {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			p.info("size of "+dir, "%s", errnoName(err))
			continue
		}
		size := st.Blocks * uint64(st.Bsize)
		detail := fmt.Sprintf("%d bytes, %d inodes, file system %#x", size, st.Files, st.Type)
		if st.Type != unix.TMPFS_MAGIC {
			p.info("size of "+dir, "%s", detail)
			continue
		}
		p.holds("size of "+dir, size > 0 && size <= limit && st.Files > 0, "%s, limit %d", detail, limit)
	}
}
