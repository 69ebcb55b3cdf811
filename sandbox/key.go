package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/sys/unix"
)

// Key is the same for policies that make the same call of a process. It tells
// folders apart that the host has had under one path at different times: links
// can be pointed elsewhere, folders replaced, and file systems mounted below them.
func (r Resolved) Key() string {
	if r.held != nil && r.held.own != nil {
		return r.held.own.key
	}
	return r.key()
}

// key is short, so that it costs little to compare.
func (r Resolved) key() string {
	key := sha256.New()
	fmt.Fprintf(key, "%#v %s", r.policy, r.held.key(r.workspace))
	for _, g := range r.grants {
		fmt.Fprintf(key, " %q %t %s", g.target, g.write, r.held.key(g.source))
		for _, m := range r.held.mountsBelow(g.source) {
			fmt.Fprintf(key, " %d %q %q %q", m.id, m.at, m.device, m.root)
		}
	}
	for _, m := range r.masks {
		fmt.Fprintf(key, " %q %q %d:%d %d", m.grant, m.target, m.device, m.inode, m.kind)
	}
	return hex.EncodeToString(key.Sum(nil))
}

// mountsBelow are those that a grant of the folder shows, as they were when the
// policy was resolved.
func (h *held) mountsBelow(path string) (list []mountPoint) {
	if h == nil {
		return nil
	}
	for _, m := range h.mounts {
		if m.at != path && within(m.at, path) {
			list = append(list, m)
		}
	}
	return list
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
