package main

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// forks is held for reading while a fork is under way, and strays counts those
// whose clone has failed.
var (
	forks  sync.RWMutex
	strays atomic.Int64
)

// forkExec is syscall.ForkExec without its leak: where clone fails, as into a
// cgroup that dies, the pipe for the child's user mappings stays open (Go 1.26).
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	forks.RLock()
	pid, err = syscall.ForkExec(path, argv, attr)
	forks.RUnlock()
	if err != nil && attr.Sys.UidMappings != nil {
		strays.Add(1)
	}
	if strays.Load() > 0 && forks.TryLock() { // else a later fork does it
		strays.Store(0)
		closeStrays()
		forks.Unlock()
	}
	return pid, err
}

// closeStrays closes pipes of which this process has both ends: nobody has given
// it one, and no fork is under way.
func closeStrays() {
	ends := map[string]int{}
	for _, name := range descriptorNames() {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + name)
		if err != nil || !strings.HasPrefix(to, "pipe:") {
			continue
		}
		if other, ok := ends[to]; ok && writes(fd) != writes(other) {
			unix.Close(fd)
			unix.Close(other)
		}
		ends[to] = fd
	}
}

// descriptorNames lists the open descriptors. Package os would open more of them
// for its poller.
func descriptorNames() (names []string) {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	buf := make([]byte, 4<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// writes says whether a descriptor is open for writing.
func writes(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_WRONLY
}
