package main

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// File system rights by the ABI that brought them (landlock(7)).
var landlockRights = []struct{ abi, rights int64 }{
	{1, 1<<13 - 1},
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
}

const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockNever = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// landlockScopeABI is the first with scopes (Linux 6.12).
	landlockScopeABI = 6
)

// landlock restricts this thread and its children as the mounts already do:
// the whole tree may be read, only root.Writable be written. Signals and
// abstract sockets end at the sandbox where the ABI has scopes.
func landlock(root *wire.Root) error {
	attr := unix.LandlockRulesetAttr{}
	for _, step := range landlockRights {
		if root.Landlock >= step.abi {
			attr.Handled_access_fs |= uint64(step.rights)
		}
	}
	if root.Landlock >= landlockScopeABI {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), attrSize(root.Landlock), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(ruleset))
	if err := allow(ruleset, "/", landlockRead); err != nil {
		return err
	}
	for _, path := range root.Writable {
		if err := allow(ruleset, path, attr.Handled_access_fs&^landlockNever); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// attrSize is what a kernel of this ABI knows of the struct: older ones refuse
// what is longer and not zero, all accept less.
func attrSize(abi int64) uintptr {
	switch {
	case abi >= landlockScopeABI:
		return 24
	case abi >= 4:
		return 16
	}
	return 8
}

// allow adds a rule. A file can't have the rights of folders.
func allow(ruleset uintptr, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= landlockFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
