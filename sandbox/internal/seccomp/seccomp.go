// Package seccomp names the system call filters of sandboxed calls (seccomp(2)). The launcher has them as finished
// programs for the kernel's classic BPF (filter_*.h of sandbox/launcher): installing one computes nothing. The same
// programs are in this package's tests, which try them on the kernel.
//
// They are those of Docker's default profile for a container without capabilities, tightened further; gen
// derives them, and gen/policy.go says what is tighter and why. A call is answered in one of four ways:
//
//   - It runs.
//   - EPERM (for socket(2) also EAFNOSUPPORT, ESOCKTNOSUPPORT and EPROTONOSUPPORT, for huge pages ENOMEM and EINVAL): the call is known and refused.
//   - ENOSYS: clone3(2) and io_uring, so that programs fall back to what can be filtered, and everything that Docker's
//     profile does not know, newer system calls above all.
//   - SIGSYS kills the process: a call through the interface of another architecture, or on amd64 of x32.
//
// Arguments are compared by their low 32 bits wherever the kernel takes an int: it ignores the rest.
package seccomp

//go:generate go run ./gen

// Profile selects a filter by its number in the launcher's options.
type Profile int

const (
	// Default suits one tenant on a machine.
	Default Profile = iota
	// Strict suits several tenants: it is Default without file locks and leases (flock(2), fcntl(2), lockf(3)), because
	// a lock on a file that two tenants can open is a channel between them, and a way to stop each other. They fail with
	// EPERM.
	Strict
)
