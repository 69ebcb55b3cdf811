package main

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// launcherEntry is a launcher that lives, as the zygote remembers it: by the groups in
// which it and its tool are to be killed should the host die.
type launcherEntry struct {
	cgroup int      // descriptor of its cgroup2 directory
	mounts int      // descriptor of its mount namespace, or -1
	quotas []string // cgroup v1 files that may hold up its end
}

// forget gives up what is kept of a launcher.
func (e launcherEntry) forget() {
	unix.Close(e.cgroup)
	if e.mounts >= 0 {
		closeSlowly(e.mounts)
	}
}

var launchers = struct {
	sync.Mutex
	living map[int]launcherEntry
}{living: map[int]launcherEntry{}}

// watchOver remembers a launcher until it is reaped. One that was killed during
// its birth may be reaped by now.
func watchOver(pid, pidfd int, b *birth) {
	if b.cgroup < 0 {
		return
	}
	cgroup, err := unix.FcntlInt(uintptr(b.cgroup), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		tellWorn()
		return // its lifeline still ends it, only later
	}
	w := launcherEntry{cgroup: cgroup, mounts: mountsOf(pid, b)}
	for _, tasks := range b.enter {
		if path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(tasks)); err == nil {
			w.quotas = append(w.quotas, strings.TrimSuffix(path, "tasks")+"cpu.cfs_quota_us")
		}
	}
	launchers.Lock()
	defer launchers.Unlock()
	if reaped(pidfd) {
		w.forget()
		return
	}
	launchers.living[pid] = w
}

// mountsOf opens the mount namespace of a launcher that has one of its own. A
// namespace ends with its last holder, which then waits for a grace period of
// all processors (namespace_unlock in fs/namespace.c): it shall not be a process
// whose end is waited for.
func mountsOf(pid int, b *birth) int {
	if b.Flags&unix.CLONE_NEWNS == 0 {
		return -1
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1 // its end takes longer
	}
	return fd
}

// closers wait side by side: grace periods are shared.
const closers = 4

// slowly are descriptors whose closing may take a while. Where so many wait, the
// next is waited for.
var slowly = sync.OnceValue(func() chan<- int {
	fds := make(chan int, 256)
	for range closers {
		go func() {
			for fd := range fds {
				unix.Close(fd)
			}
		}()
	}
	return fds
})

func closeSlowly(fd int) { slowly() <- fd }

// reaped says whether a child was waited for already.
func reaped(pidfd int) bool {
	for {
		err := unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// reapDead takes the statuses of all that has ended, and forgets it before its
// process id can be another's.
func reapDead() {
	launchers.Lock()
	defer launchers.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if w, ok := launchers.living[pid]; ok && !status.Stopped() {
			w.forget()
			delete(launchers.living, pid)
		}
	}
}

// endAll kills what lives, when the host has died. The launchers would end it
// too, but under their tool's own CPU quota: that is lifted here first.
func endAll() {
	launchers.Lock()
	defer launchers.Unlock()
	for _, w := range launchers.living {
		for _, quota := range w.quotas {
			put(unix.AT_FDCWD, quota, "-1")
		}
		put(w.cgroup, "cpu.max", "max")
		put(w.cgroup, "cgroup.kill", "1")
	}
}

// put writes a file that may not be there.
func put(dir int, name, value string) {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, []byte(value))
	unix.Close(fd)
}
