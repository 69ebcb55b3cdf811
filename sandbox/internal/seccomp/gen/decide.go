package main

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// decision is what a filter does with a call: an outcome, or a *question whose answer leads to the next decision.
type decision interface {
	// place adds the decision's code to p.
	place(p *program) address
}

// outcome is a value that a filter returns to the kernel (seccomp(2), "SECCOMP_RET_*").
type outcome uint32

const (
	allow  = outcome(unix.SECCOMP_RET_ALLOW)
	kill   = outcome(unix.SECCOMP_RET_KILL_PROCESS)
	refuse = outcome(unix.SECCOMP_RET_ERRNO | unix.EPERM)
	hide   = outcome(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)
)

func errno(e unix.Errno) outcome { return outcome(unix.SECCOMP_RET_ERRNO | uint32(e)) }

// question asks whether the low 32 bits of an argument, under a mask, are one of some values.
type question struct {
	arg     int
	mask    uint32 // 0: all bits
	values  []uint32
	yes, no decision
}

// whether asks for one of values in all 32 bits.
func whether(arg int, yes, no decision, values ...uint32) decision {
	return &question{arg: arg, values: values, yes: yes, no: no}
}

// nowhere are names in Docker's profile that no table has: 32-bit ARM's own calls, far above all others.
var nowhere = []string{"breakpoint", "set_tls"}

// decide says for every name what happens to it; what it does not name is hidden. It fails where a name is decided
// twice, would be looser than Docker's profile, or is not a system call.
func decide(docker dockerProfile, tables map[string]numbers, strict bool) (map[string]decision, error) {
	questions := asked(docker, strict)
	if err := errors.Join(checkNames(docker, tables), checkQuestions(docker, questions)); err != nil {
		return nil, err
	}
	decisions := map[string]decision{}
	for name := range docker.known {
		decisions[name] = refuse
	}
	for name := range docker.plain {
		decisions[name] = allow
	}
	for name, d := range questions {
		decisions[name] = d
	}
	for _, name := range slices.Concat(refused...) {
		decisions[name] = refuse
	}
	for _, name := range hidden {
		decisions[name] = hide
	}
	return decisions, nil
}

// fixed are the names that the policy decides by themselves.
func fixed() []string { return slices.Concat(slices.Concat(refused...), hidden) }

// checkQuestions finds calls that Docker allows by their arguments and the policy does not ask about, and calls that the
// policy asks about but Docker refuses.
func checkQuestions(docker dockerProfile, questions map[string]decision) error {
	var errs []error
	for name := range docker.byArgs {
		if questions[name] == nil {
			errs = append(errs, fmt.Errorf("docker looks at the arguments of %s, the policy does not", name))
		}
	}
	for name := range questions {
		if !docker.plain[name] && docker.byArgs[name] == nil {
			errs = append(errs, fmt.Errorf("docker refuses %s, the policy does not", name))
		}
		if slices.Contains(fixed(), name) {
			errs = append(errs, fmt.Errorf("%s is decided twice", name))
		}
	}
	return errors.Join(errs...)
}

// checkNames finds names that are misspelt, or younger than golang.org/x/sys: the policy's own have to exist where the
// launcher runs, Docker's on some architecture.
func checkNames(docker dockerProfile, tables map[string]numbers) error {
	var errs []error
	seen := map[string]bool{}
	for _, name := range fixed() {
		if !exists(name, tables, "amd64", "arm64") {
			errs = append(errs, fmt.Errorf("the policy names %q, which is not a system call", name))
		}
		if seen[name] {
			errs = append(errs, fmt.Errorf("%s is decided twice", name))
		}
		seen[name] = true
	}
	for name := range docker.known {
		if !exists(name, tables) && !slices.Contains(nowhere, name) {
			errs = append(errs, fmt.Errorf("docker names %q, which golang.org/x/sys does not know", name))
		}
	}
	return errors.Join(errs...)
}

// exists says whether one of archs, by default any architecture, has the call.
func exists(name string, tables map[string]numbers, archs ...string) bool {
	for arch, table := range tables {
		if _, ok := table[name]; ok && (len(archs) == 0 || slices.Contains(archs, arch)) {
			return true
		}
	}
	return false
}
