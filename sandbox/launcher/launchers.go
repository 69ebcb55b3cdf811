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
	quotas []string // cgroup v1 files that may hold up its end
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
	w := launcherEntry{cgroup: cgroup}
	for _, tasks := range b.enter {
		if path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(tasks)); err == nil {
			w.quotas = append(w.quotas, strings.TrimSuffix(path, "tasks")+"cpu.cfs_quota_us")
		}
	}
	launchers.Lock()
	defer launchers.Unlock()
	if reaped(pidfd) {
		unix.Close(w.cgroup)
		return
	}
	launchers.living[pid] = w
}

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
			unix.Close(w.cgroup)
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
