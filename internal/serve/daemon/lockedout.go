package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
)

// tellLockedOut warns of users that the configuration names and the rights of the socket's
// file keep out. Those of one that the service manager has made are its own.
func (d *daemon) tellLockedOut() {
	if d.listeners.socket == nil {
		return
	}
	info, err := os.Stat(d.listeners.socket.path)
	if err != nil {
		return
	}
	if out := lockedOut(d.namedUsers(), info); len(out) > 0 {
		d.logger.Warn("users that the configuration names cannot connect, for the rights of the socket do not let them: give it a group that they are in and mode 0660, or mode 0666 (socket: group, mode)",
			"uids", out, "socket", d.listeners.socket.path, "mode", fmt.Sprintf("%#o", info.Mode().Perm()))
	}
}

// namedUsers are those that the configuration lets in by their uid, but for those that the
// rights of files do not concern.
func (d *daemon) namedUsers() []uint32 {
	book := d.book()
	named := slices.Clone(book.Guests)
	for _, p := range book.Profiles {
		named = append(named, p.UIDs...)
	}
	slices.Sort(named)
	return slices.DeleteFunc(slices.Compact(named), func(uid uint32) bool { return slices.Contains(book.Admins, uid) })
}

func lockedOut(users []uint32, socket fs.FileInfo) []uint32 {
	mode, gid := socket.Mode().Perm(), socket.Sys().(*syscall.Stat_t).Gid
	switch {
	case mode&0o002 != 0:
		return nil
	case mode&0o020 == 0:
		return users
	}
	return slices.DeleteFunc(users, func(uid uint32) bool { return mayBeIn(uid, gid) })
}

// mayBeIn says whether a user is in a group. One that this machine does not know, as in
// another container, may be.
func mayBeIn(uid, gid uint32) bool {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return true
	}
	groups, err := u.GroupIds()
	return err != nil || slices.Contains(groups, strconv.FormatUint(uint64(gid), 10))
}
