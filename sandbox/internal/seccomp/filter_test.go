package seccomp

import "golang.org/x/sys/unix"

// Filter returns the program of p for the running architecture, as the launcher has it. It needs Linux 4.14
// (SECCOMP_RET_KILL_PROCESS).
func Filter(p Profile) []unix.SockFilter {
	if p == Default {
		return defaultFilter[:]
	}
	return strictFilter[:]
}
