package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Key returns a string that is equal for policies with the same effect on a call. It
// differs if a path leads to another folder than before: links can be changed, folders
// replaced, and file systems mounted below them. For a policy with a network in the native
// tier this includes the host's files for name resolution.
func (r Resolved) Key() (key string) {
	if r.held != nil && r.held.own != nil {
		key = r.held.own.key
	} else {
		key = r.key()
	}
	if r.policy.tier() == TierNone || r.policy.network() == NetworkNone {
		return key
	}
	for _, path := range networkFiles { // read by the call, or by what serves its grants
		key += " " + PathKey(path)
	}
	return key
}

// key is short, so that it costs little to compare.
func (r Resolved) key() string {
	key := sha256.New()
	fmt.Fprintf(key, "%#v %s", r.policy, r.held.key(r.workspace))
	for _, g := range r.grants {
		fmt.Fprintf(key, " %q %t", g.target, g.write)
		r.held.writeKey(key, g.source)
	}
	for _, m := range r.masks {
		fmt.Fprintf(key, " %q %q %d:%d %v %d", m.grant, m.target, m.device, m.inode, m.born, m.kind)
	}
	return hex.EncodeToString(key.Sum(nil))
}

// Key returns a string that is equal for starts with equal sandboxes, even if their programs
// differ: a sandbox that waits (see Waits) for one can be used for the other.
func (s Spec) Key() string {
	key := sha256.New()
	s.Waits = true
	key.Write(s.options(identity{}).Encode())
	fmt.Fprintf(key, "%d %d %t %t %q", s.Plan.epoch, s.Plan.flags, s.Plan.user, s.Plan.shared, s.Lease.Name())
	for _, tree := range s.Plan.stage {
		fmt.Fprintf(key, " %#v", tree)
		s.Plan.held.writeKey(key, tree.Source)
	}
	for _, m := range s.Plan.root.Mounts {
		if m.Kind == wire.MountBind { // ld.so.cache, for example, is replaced by ldconfig(8)
			fmt.Fprintf(key, " %s", PathKey(m.Source))
		}
	}
	return hex.EncodeToString(key.Sum(nil))
}

// writeKey writes the key of a path and of what is mounted below it.
func (h *held) writeKey(to io.Writer, path string) {
	fmt.Fprintf(to, " %s", h.key(path))
	for _, m := range h.mountsBelow(path) {
		fmt.Fprintf(to, " %d %q %q %q", m.id, m.at, m.device, m.root)
	}
}

// mountsBelow are those that a grant of the folder shows, as they were when the
// policy was resolved.
func (h *held) mountsBelow(path string) (list []mountPoint) {
	if h == nil {
		return nil
	}
	for _, m := range h.mounts {
		if m.at != path && Within(m.at, path) {
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

// PathKey returns a string that is equal as long as path leads to the same file or folder.
// It includes the time of birth, because inode numbers are reused.
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
