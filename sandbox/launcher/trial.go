package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// trial is the tool of a trial call: it does what the sandbox forbids, and its
// exit status says what was possible all the same. Bit n stands for the nth
// entry; args are the paths that must not be writable.
func trial(paths []string) (escaped int) {
	if len(paths) == 0 || os.Getpid() == 1 || !confinedHere() {
		return 0 // nothing is forbidden here, so nothing is tried
	}
	for bit, possible := range []func() bool{
		func() bool { return anyWritable(paths) },
		func() bool { return unix.Mount("none", "/tmp", "tmpfs", 0, "") != unix.EPERM },
		func() bool { return unix.Unshare(unix.CLONE_NEWUSER) != unix.EPERM },
		privileged,
		func() bool { return os.Getuid() == 0 },
		reachesOut,
	} {
		if possible() {
			escaped |= 1 << bit
		}
	}
	return escaped
}

// confinedHere: this is a process of a sandbox, by what only a sandbox shows.
// Outside of one what follows would be done to the host.
func confinedHere() bool {
	_, err := os.Stat(wire.TrialMark)
	return err == nil
}

func anyWritable(paths []string) bool {
	for _, path := range paths {
		fd, err := unix.Open(path+"/.toolhost-trial", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			_ = unix.Unlink(path + "/.toolhost-trial")
			return true
		}
	}
	return false
}

// privileged reads its own state from the kernel: capabilities, privileges to
// come, and the filter.
func privileged() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return true
	}
	for _, want := range []string{
		"\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n", "\nCapEff:\t0000000000000000\n",
		"\nCapBnd:\t0000000000000000\n", "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n",
	} {
		if !strings.Contains(string(status), want) {
			return true
		}
	}
	return false
}

// reachesOut tries to send one datagram to a documentation address (RFC 5737).
func reachesOut() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}}) == nil
}
