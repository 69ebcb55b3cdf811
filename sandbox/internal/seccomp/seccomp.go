// Package seccomp holds the system call filters of sandboxed calls (seccomp(2)), as finished programs for the kernel's
// classic BPF: installing one computes nothing and links neither a JSON decoder nor an assembler.
//
// The programs are those of Docker's default profile for a container without capabilities, tightened further; gen
// derives them, and gen/policy.go says what is tighter and why. A call is answered in one of four ways:
//
//   - It runs.
//   - EPERM (for socket(2) also EAFNOSUPPORT and EPROTONOSUPPORT): the call is known and refused.
//   - ENOSYS: clone3(2) and io_uring, so that programs fall back to what can be filtered, and everything that Docker's
//     profile does not know, newer system calls above all.
//   - SIGSYS kills the process: a call through the interface of another architecture, or on amd64 of x32.
//
// Arguments are compared by their low 32 bits wherever the kernel takes an int: it ignores the rest.
package seccomp

import "golang.org/x/sys/unix"

//go:generate go run ./gen

// Profile selects a filter.
type Profile int

const (
	// Default suits one tenant on a machine.
	Default Profile = iota
	// Strict suits several tenants: it is Default without file locks and leases (flock(2), fcntl(2), lockf(3)), because
	// a lock on a file that two tenants can open is a channel between them, and a way to stop each other. They fail with
	// EPERM.
	Strict
)

// Filter returns the program of p for the running architecture. A p that is unknown gets Strict.
//
// The program is for SECCOMP_SET_MODE_FILTER. It needs Linux 4.14 (SECCOMP_RET_KILL_PROCESS); what it refuses stays
// refused in every descendant of the thread that installs it, which first has to set PR_SET_NO_NEW_PRIVS. It refuses
// mount(2), chroot(2) and the like, so it comes last.
//
// The slice is shared and must not be modified.
func Filter(p Profile) []unix.SockFilter {
	if p == Default {
		return defaultFilter[:]
	}
	return strictFilter[:]
}
