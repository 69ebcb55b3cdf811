package sandbox

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Key is the same for policies that make the same call of a process. It tells
// folders apart that the host has had under one path at different times: links
// can be pointed elsewhere, and folders replaced.
func (r Resolved) Key() string {
	var key strings.Builder
	fmt.Fprintf(&key, "%#v %s", r.policy, r.held.key(r.workspace))
	for _, g := range r.grants {
		fmt.Fprintf(&key, " %q %t %s", g.target, g.write, r.held.key(g.source))
	}
	return key.String()
}

// key is that of what was opened at a path.
func (h *held) key(path string) string {
	if o := h.get(path); o != nil {
		return fmt.Sprintf("%q %v", path, o.id)
	}
	return PathKey(path)
}

// PathKey is the same for as long as a path leads to the same file or folder. Inode
// numbers alone are given anew, so the time of birth is part of it.
func PathKey(path string) string {
	if path == "" {
		return `""`
	}
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return fmt.Sprintf("%q (%v)", path, err)
	}
	return fmt.Sprintf("%q (%d:%d %d %d.%d)", path, st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
