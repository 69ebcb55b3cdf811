package main

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// oldRoot is where the root that was pivoted from lies: on top of the new one.
const oldRoot = "/.."

// leaving is what the thread of detach has to say: umount2's result, or that it
// has not returned yet. Its stack is never used, for it blocks all signals.
var leaving struct {
	path   [len(oldRoot) + 1]byte
	result int64
	stack  [4 << 10]byte
}

const notReturned = 1

// detach starts a thread that detaches the mount at path, stores umount2's
// result and ends; it calls nothing of Go's. The result is the thread's id, or an
// error number below 0.
//
//go:noescape
func detach(stack uintptr, path *byte, result *int64) int64

// leaveOldRoot detaches what was the root before. The kernel does so at once, but
// umount2 returns only after a grace period of all processors (namespace_unlock
// in fs/namespace.c), for tens of milliseconds where they are busy: nothing but
// a thread of its own waits for that.
func leaveOldRoot() error {
	copy(leaving.path[:], oldRoot)
	leaving.result = notReturned
	before := setMask(^uint64(0))
	top := uintptr(unsafe.Pointer(&leaving.stack[len(leaving.stack)-1])) &^ 15
	thread := detach(top, &leaving.path[0], &leaving.result)
	setMask(before)
	if thread < 0 {
		return unix.Unmount(oldRoot, unix.MNT_DETACH)
	}
	for {
		result := atomic.LoadInt64(&leaving.result)
		switch covered, err := rootIsCovered(); {
		case err != nil || !covered:
			return err
		case result <= 0:
			return syscall.Errno(max(-result, int64(unix.EBUSY)))
		}
		pause(20_000)
	}
}

// rootIsCovered says whether something is mounted on the root.
func rootIsCovered() (bool, error) {
	below, err := mountID("/")
	if err != nil {
		return false, err
	}
	top, err := mountID(oldRoot)
	return top != below, err
}

func mountID(path string) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID == 0 {
		err = unix.ENOSYS
	}
	return st.Mnt_id, err
}
