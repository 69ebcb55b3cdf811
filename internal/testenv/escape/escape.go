// Package escape holds probes that try to leave a sandbox. They are compiled into a test binary, which plays the hostile
// tool: inside the sandbox it calls Main, which prints one JSON line per fact; the test outside reads them with Judge and
// asserts that no fact says escaped.
//
// A probe does no damage where nothing stops it. It sends no signal but 0, writes to nothing that it did not make, opens
// system files without O_TRUNC and closes them at once, and gives dangerous system calls arguments that the kernel
// refuses by itself after its permission checks. What would act (mounts, namespaces, limits) happens in a forked child,
// and outside a sandbox only once that child has a mount namespace of its own.
package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// endCase ends a group's facts; it carries their number.
const endCase = "end"

// Fact is one thing that a probe found.
type Fact struct {
	Probe string `json:"probe"`
	Case  string `json:"case"`
	// Errno names the error that the kernel gave ("EPERM"), or the signal that ended the attempt ("SIGSYS").
	Errno string `json:"errno,omitempty"`
	// Detail is for the reader of a failed test.
	Detail string `json:"detail,omitempty"`
	// Escaped says that the sandbox did not hold. A fact that only informs has false.
	Escaped bool `json:"escaped"`
}

// end is the last line of a group.
type end struct {
	Probe string `json:"probe"`
	Case  string `json:"case"`
	Facts int    `json:"facts"`
}

type group struct {
	name string
	run  func(*probe)
}

// groups are in the order in which they run. Facts about the descriptors come first: later groups make some.
func groups() []group {
	return []group{
		{"fds", descriptors},
		{"identity", identity},
		{"namespaces", namespaces},
		{"syscalls", systemCalls},
		{"paths", paths},
		{"mounts", mounts},
		{"writable", writable},
		{"processes", processes},
		{"network", network},
		{"grants", grants},
		{"ipc", ipc},
		{"cgroup", cgroups},
		{"exec", executables},
		{"orphans", orphans},
	}
}

// Names lists the groups in the order in which Main runs them.
func Names() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// Run runs one group and writes its facts as JSON lines. The last line has the case "end" and the number of facts, so
// that a run that broke off is noticed. Groups do not run concurrently with each other or with other users of the process.
func Run(name string, env Expect, w io.Writer) error {
	for _, g := range groups() {
		if g.name == name {
			p := &probe{name: name, env: env, boxed: env.boxed(), out: json.NewEncoder(w)}
			g.run(p)
			return errors.Join(p.err, p.out.Encode(end{name, endCase, p.facts}))
		}
	}
	return fmt.Errorf("cannot run probe %q: no such group", name)
}

// Main is the hostile tool. Its arguments are those that Expect.Args made: what the outside knows, then groups. It
// returns the exit status; escapes are not errors.
func Main(args []string, w io.Writer) int {
	if err := run(args, w); err != nil {
		fmt.Fprintln(w, "escape:", err)
		return 1
	}
	return 0
}

func run(args []string, w io.Writer) error {
	if len(args) == 0 {
		return errors.New("cannot run probes: no argument that says what to expect")
	}
	var env Expect
	if err := json.Unmarshal([]byte(args[0]), &env); err != nil {
		return fmt.Errorf("cannot read what to expect: %w", err)
	}
	names := args[1:]
	if len(names) == 0 {
		names = Names()
	}
	for _, name := range names {
		if err := Run(name, env, w); err != nil {
			return err
		}
	}
	return nil
}
