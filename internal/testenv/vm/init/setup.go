package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

type mount struct {
	fstype, target string
	flags          uintptr
	data           string
}

var mounts = []mount{
	{"proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"sysfs", "/sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"devtmpfs", "/dev", unix.MS_NOSUID, "mode=0755"},
	{"devpts", "/dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, "ptmxmode=0666,mode=0620"},
	{"tmpfs", "/dev/shm", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"tmpfs", "/tmp", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755"},
	{"cgroup2", "/sys/fs/cgroup", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "nsdelegate"},
}

var links = map[string]string{
	"/dev/fd":     "/proc/self/fd",
	"/dev/stdin":  "/proc/self/fd/0",
	"/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2",
}

func setUp() error {
	if err := leaveRootfs(); err != nil {
		return fmt.Errorf("cannot leave rootfs: %w", err)
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fstype, m.target, m.fstype, m.flags, m.data); err != nil {
			return fmt.Errorf("cannot mount %s on %s: %w", m.fstype, m.target, err)
		}
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	if err := unix.Sethostname([]byte("toolhost-vm")); err != nil {
		return err
	}
	return loopbackUp()
}

// leaveRootfs moves a bind mount of the initramfs over the root. On rootfs itself pivot_root(2) answers EINVAL, and a
// sandbox under test needs it.
func leaveRootfs() error {
	const root = "/newroot"
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("/", root, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return unix.Chdir("/")
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
