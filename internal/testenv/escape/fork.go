package escape

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A script is run by a forked child that makes raw system calls and nothing else, so that an attempt may end in a death
// by signal or change what a process cannot change back. The child is a copy of one thread of a Go program: it must not
// allocate, grow its stack or meet the scheduler. Forking like this costs a tenth of running the test binary anew.

const (
	maxSteps    = 24
	arenaBytes  = 1 << 20
	childExpiry = 5 * time.Second
)

// step is one system call of a script.
type step struct {
	nr   uintptr
	args [6]uintptr
	// result, if not 0, puts the result of an earlier step (1 is the first) in place of args[into].
	result, into int
	// must ends the script where the call fails.
	must bool
	// grandchild leaves the step to the process that an earlier step's clone made. Without such a step that one ends at once.
	grandchild bool
}

func call(nr uintptr, args ...uintptr) step {
	s := step{nr: nr}
	copy(s.args[:], args)
	return s
}

// with takes the result of the n-th step (from 1) as argument i.
func (s step) with(n, i int) step { s.result, s.into = n, i; return s }

func (s step) orEnd() step { s.must = true; return s }

func (s step) inGrandchild() step { s.grandchild = true; return s }

// outcome is what became of one step.
type outcome struct {
	ran   bool
	ret   uintptr
	errno syscall.Errno
	// signal ended the script before this step had a result; SIGKILL also stands for a call that did not return.
	signal syscall.Signal
}

// blocked says that the kernel refused before looking at the arguments.
func (o outcome) blocked() bool {
	switch o.errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return o.ran
	}
	return o.signal == unix.SIGSYS
}

// err is why the call failed. A step that was not reached has failed.
func (o outcome) err() error {
	switch {
	case o.signal != 0:
		return fmt.Errorf("%s", o.name())
	case !o.ran:
		return fmt.Errorf("not reached")
	case o.errno != 0:
		return o.errno
	}
	return nil
}

func (o outcome) name() string {
	if o.signal != 0 {
		return unix.SignalName(o.signal)
	}
	if !o.ran {
		return "not reached"
	}
	if o.errno == 0 {
		return ""
	}
	return errnoName(o.errno)
}

// attempt runs a script and returns the last step's outcome, or that of the step that ended it.
func attempt(steps ...step) outcome {
	all := script(0, steps...)
	for i, o := range all {
		if o.signal != 0 || !o.ran || o.errno != 0 && steps[i].must {
			return o
		}
	}
	return all[len(all)-1]
}

// script runs the steps in a child that clone makes with the flags given. If the clone fails, every outcome has its error.
func script(flags uintptr, steps ...step) []outcome {
	if len(steps) > maxSteps {
		panic("bug: a script of too many steps")
	}
	results := newResults()
	defer results.free()
	pid, errno := fork(flags|uintptr(unix.SIGCHLD), steps, results.slots, &results.action)
	outcomes := make([]outcome, len(steps))
	if errno != 0 {
		for i := range outcomes {
			outcomes[i] = outcome{ran: true, errno: errno}
		}
		return outcomes
	}
	status := await(int(pid), childExpiry)
	copy(outcomes, results.slots)
	if status.Signaled() {
		for i := range outcomes {
			if !outcomes[i].ran {
				outcomes[i].signal = status.Signal()
				break
			}
		}
	}
	return outcomes
}

// await waits for a child, and kills it when it takes too long.
func await(pid int, patience time.Duration) unix.WaitStatus {
	var status unix.WaitStatus
	expiry := time.Now().Add(patience)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		got, err := unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, nil)
		if got == pid || err != nil && err != unix.EINTR {
			return status
		}
		if time.Now().After(expiry) {
			_ = unix.Kill(pid, unix.SIGKILL) // a child of ours, not reaped yet
			expiry = time.Now().Add(time.Hour)
		}
		time.Sleep(pause)
	}
}

// results is memory that parent and child share.
type results struct {
	memory []byte
	slots  []outcome
	action [8]uintptr // a zeroed struct sigaction: the default action
}

func newResults() *results {
	memory, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(outcome{}))*maxSteps, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		panic("cannot map memory for a probe: " + err.Error())
	}
	return &results{memory: memory, slots: unsafe.Slice((*outcome)(unsafe.Pointer(&memory[0])), maxSteps)}
}

func (r *results) free() { _ = unix.Munmap(r.memory) }

// fork clones and lets the child run the steps. The clone shares no memory, so the child stands on a copy of this stack.
//
//go:noinline
//go:norace
//go:nosplit
func fork(flags uintptr, steps []step, out []outcome, action *[8]uintptr) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	// Go's handlers need a runtime that is not there any more.
	for sig := uintptr(1); sig < 32; sig++ {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(action)), 0, 8, 0, 0)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	grandchild := false
	for i := range steps {
		if i >= len(out) || steps[i].grandchild != grandchild {
			continue
		}
		s := &steps[i]
		a := s.args
		if from := s.result - 1; from >= 0 && from < len(out) && s.into >= 0 && s.into < len(a) {
			a[s.into] = out[from].ret
		}
		ret, _, errno := syscall.RawSyscall6(s.nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 && ret == 0 && (s.nr == unix.SYS_CLONE || s.nr == unix.SYS_CLONE3) {
			grandchild = true
			continue
		}
		out[i].ret, out[i].errno, out[i].ran = ret, errno, true
		if errno != 0 && s.must {
			break
		}
	}
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// arena holds what scripts point to. It is outside of Go's heap: nothing moves or frees it before the child has it.
type arena struct {
	memory []byte
	used   int
}

func newArena() *arena {
	memory, err := unix.Mmap(-1, 0, arenaBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic("cannot map memory for a probe: " + err.Error())
	}
	return &arena{memory: memory}
}

func (a *arena) free() { _ = unix.Munmap(a.memory) }

// bytes copies b, aligned, and returns its address.
func (a *arena) bytes(b []byte) uintptr {
	at := a.used
	a.used += (len(b) + 15) &^ 7 // never empty, so that addresses differ
	if a.used > len(a.memory) {
		panic("bug: the arena is full")
	}
	copy(a.memory[at:], b)
	return uintptr(unsafe.Pointer(&a.memory[at]))
}

// str copies s with a NUL behind it.
func (a *arena) str(s string) uintptr { return a.bytes(append([]byte(s), 0)) }

// words copies 64-bit numbers, in the machine's order.
func (a *arena) words(words ...uint64) uintptr {
	if len(words) == 0 {
		return a.bytes(nil)
	}
	address := a.bytes(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words)))
	runtime.KeepAlive(words)
	return address
}

// minus is a negative number as a system call's argument.
func minus(n int) uintptr { return ^uintptr(n) + 1 }
