package main

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// scaffolds are folders of the host's, one of which the new root covers while
// it is built. Nothing below them is needed for that.
var scaffolds = []string{"/tmp", "/mnt", "/var", "/home"}

// builder makes the new root. Every target is reached component by component
// below it, following no link: trees that tools have written to may lie on
// the way.
type builder struct {
	root   int // descriptor of the new root
	path   string
	staged int // the next staged tree
}

// buildRoot makes the world of opts.Root the process's root.
func buildRoot(opts *wire.Options) {
	b := newBuilder(&opts.Root)
	b.staged = opts.StagedFD()
	for _, link := range opts.Root.Links {
		parent, name := b.parent(link.Path)
		must("link "+link.Path, unix.Symlinkat(link.Target, parent, name))
		unix.Close(parent)
	}
	for _, file := range opts.Root.Files {
		b.write(file)
	}
	b.write(wire.Text{Path: emptyFile})
	must("make "+emptyDir, unix.Mkdirat(b.root, emptyDir[1:], 0o555))
	for i := range opts.Root.Mounts {
		b.mount(&opts.Root.Mounts[i])
	}
	b.guardProc(&opts.Root)
	b.enter()
}

func newBuilder(root *wire.Root) *builder {
	options := "mode=0755,nr_inodes=4096,size=" + strconv.FormatInt(root.Bytes, 10)
	var err error
	for _, path := range scaffolds {
		if err = unix.Mount("tmpfs", path, "tmpfs", plainFlags, options); err != nil {
			continue
		}
		return &builder{root: openDir("open the new root", path), path: path}
	}
	must("mount the new root", err)
	return nil
}

// enter makes the new root the only one. Its own tmpfs becomes read-only.
func (b *builder) enter() {
	must("make the root read-only", unix.MountSetattr(b.root, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
	must("enter the new root", unix.Fchdir(b.root))
	must("pivot to the new root", unix.PivotRoot(".", "."))
	must("go to the root", unix.Chdir("/"))
	must("leave the old root", leaveOldRoot())
	unix.Close(b.root)
}

// descend opens the folder of this path, making what is missing.
func (b *builder) descend(path string) int {
	fd, err := unix.FcntlInt(uintptr(b.root), unix.F_DUPFD_CLOEXEC, 0)
	must("descend to "+path, err)
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		_ = unix.Mkdirat(fd, name, 0o755) // or the open fails
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		must("make folder "+path, err)
		unix.Close(fd)
		fd = next
	}
	return fd
}

func (b *builder) parent(path string) (fd int, name string) {
	i := strings.LastIndexByte(path, '/')
	return b.descend(path[:i]), path[i+1:]
}

// target opens the mount point, a folder or a file.
func (b *builder) target(path string, folder bool) int {
	if folder {
		return b.descend(path)
	}
	parent, name := b.parent(path)
	defer unix.Close(parent)
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		made, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o444)
		must("make "+path, err)
		return made
	}
	must("open "+path, err)
	return fd
}

func (b *builder) write(file wire.Text) {
	parent, name := b.parent(file.Path)
	mode := uint32(0o444)
	if file.Private {
		mode = 0o400
	}
	fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	must("make "+file.Path, err)
	n, err := unix.Write(fd, []byte(file.Content))
	if err == nil && n < len(file.Content) {
		err = unix.ENOSPC
	}
	must("write "+file.Path, err)
	unix.Close(fd)
	unix.Close(parent)
}

func (b *builder) mount(m *wire.Mount) {
	switch m.Kind {
	case wire.MountTmpfs:
		b.make(m, "tmpfs", "mode="+strconv.FormatInt(m.Mode, 8)+",size="+strconv.FormatInt(m.Bytes, 10)+",nr_inodes="+strconv.FormatInt(m.Inodes, 10))
	case wire.MountProc:
		b.make(m, "proc", "hidepid=invisible")
	case wire.MountStaged:
		b.attach(b.staged, m)
		b.staged++
	case wire.MountBind:
		b.bind(m)
	case wire.MountMask, wire.MountFixed:
		b.protect(m)
	}
}

// make mounts a new file system.
func (b *builder) make(m *wire.Mount, kind, options string) {
	unix.Close(b.descend(m.Target))
	must("mount "+kind+" at "+m.Target, unix.Mount(kind, b.path+m.Target, kind, plainFlags|noexec(m), options))
}

func noexec(m *wire.Mount) uintptr {
	if m.NoExec {
		return unix.MS_NOEXEC
	}
	return 0
}

// bind clones a tree that anybody can reach.
func (b *builder) bind(m *wire.Mount) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if m.Optional && (err == unix.ENOENT || err == unix.ENOTDIR) {
		return
	}
	must("bind "+m.Source, err)
	must("restrict "+m.Source, restrict(tree, m))
	b.attach(tree, m)
}

func restrict(tree int, m *wire.Mount) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	for _, f := range []struct {
		on   bool
		flag uint64
	}{{!m.Write, unix.MOUNT_ATTR_RDONLY}, {m.NoExec, unix.MOUNT_ATTR_NOEXEC}, {!m.Device, unix.MOUNT_ATTR_NODEV}} {
		if f.on {
			attr.Attr_set |= f.flag
		}
	}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// attach moves a cloned tree to its place.
func (b *builder) attach(tree int, m *wire.Mount) {
	var st unix.Stat_t
	must("look at "+m.Source, unix.Fstat(tree, &st))
	point := b.target(m.Target, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	must("mount "+m.Target, unix.MoveMount(tree, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	unix.Close(point)
	unix.Close(tree)
}

// guardProc hides parts of the new /proc and makes others read-only. What this
// kernel doesn't have needs no guard.
func (b *builder) guardProc(root *wire.Root) {
	for _, sysctl := range root.Sysctls {
		must("limit "+sysctl.Path, set(b.path+sysctl.Path, sysctl.Content))
	}
	for _, path := range root.ReadOnly {
		b.bind(&wire.Mount{Source: b.path + path, Target: path, NoExec: true, Optional: true})
	}
	for _, path := range root.Masked {
		var st unix.Stat_t
		err := unix.Lstat(b.path+path, &st)
		if err == unix.ENOENT {
			continue
		}
		must("look at "+path, err)
		empty := emptyFile
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			empty = emptyDir
		}
		must("mask "+path, b.cover(b.path+empty, b.path+path))
	}
	must("remove "+emptyFile, unix.Unlinkat(b.root, emptyFile[1:], 0))
	must("remove "+emptyDir, unix.Unlinkat(b.root, emptyDir[1:], unix.AT_REMOVEDIR))
}

// set writes a sysctl that this kernel may lack.
func set(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		unix.Close(fd)
	}
	return err
}

// What masked paths show; only these mounts of it remain.
const (
	emptyFile = "/.empty"
	emptyDir  = "/.none"
)

// cover mounts source over target, which nobody but the kernel has made.
func (b *builder) cover(source, target string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := restrict(tree, &wire.Mount{NoExec: true}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
