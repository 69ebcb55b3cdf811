package main

import (
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// The socket folder holds one socket; its size keeps a tool from storing
// anything else there.
const socketDirOptions = "mode=0700,size=64k,nr_inodes=16"

// harden hides the launcher from its tenant and, where it owns its mounts,
// makes them private and shows the tool its own processes in /proc.
func harden(opts wire.Options) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if !opts.Namespaced {
		return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if opts.Proc {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return err
		}
	}
	// Ambient capabilities brought the launcher here; the tool gets none.
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// socketDir covers the socket folder with a tmpfs that nobody outside sees and
// returns a descriptor of it for the host, or -1 without a folder.
func socketDir(opts wire.Options) (int, error) {
	if opts.SocketDir == "" {
		return -1, nil
	}
	if opts.Namespaced {
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		if err := unix.Mount("tmpfs", opts.SocketDir, "tmpfs", flags, socketDirOptions); err != nil {
			return -1, err
		}
	}
	return unix.Open(opts.SocketDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
