package main

import (
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// surround makes what the tool finds around itself and returns the descriptors
// that the host is to have.
func surround(opts *wire.Options) []int {
	must("hide from the tool", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	if !opts.Namespaced {
		must("adopt orphans", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return openSocketDir(opts.SocketDir)
	}
	must("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if opts.Confine {
		return confined(opts)
	}
	if opts.Proc {
		must("mount /proc", unix.Mount("proc", "/proc", "proc", plainFlags|unix.MS_NOEXEC, ""))
	}
	if opts.SocketDir != "" {
		must("mount the socket folder", unix.Mount("tmpfs", opts.SocketDir, "tmpfs", plainFlags|unix.MS_NOEXEC, socketDirOptions))
	}
	// Ambient capabilities brought the launcher here; the tool gets none.
	must("drop capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
	return openSocketDir(opts.SocketDir)
}

const plainFlags = unix.MS_NOSUID | unix.MS_NODEV

// The socket folder holds one socket; its size keeps a tool from storing
// anything else there.
const socketDirOptions = "mode=0700,size=64k,nr_inodes=16"

// confined is surround for a tool that sees a world of its own.
func confined(opts *wire.Options) []int {
	root := &opts.Root
	if root.Loopback {
		must("bring lo up", loopback())
	}
	if root.CgroupNS {
		// Only now is this process in its cgroup: clone(2) would have made the
		// forker's the root.
		must("unshare the cgroup namespace", unix.Unshare(unix.CLONE_NEWCGROUP))
	}
	if root.Hostname != "" {
		must("set the host name", unix.Sethostname([]byte(root.Hostname)))
	}
	buildRoot(opts)
	fds := openSocketDir(opts.SocketDir)
	if root.Workspace != "" {
		fds = append(fds, openDir("open the workspace", root.Workspace))
	}
	return fds
}

func openSocketDir(path string) []int {
	if path == "" {
		return nil
	}
	return []int{openDir("open the socket folder", path)}
}

func openDir(step, path string) int {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(step, err)
	return fd
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
