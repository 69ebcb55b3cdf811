// Package protocol is what the host side and the guest side of the kernel test VM say to each other:
// the job that the host packs into the guest's image, and the result lines that the guest prints on its console.
package protocol

import (
	"fmt"
	"strings"
	"time"
)

const (
	// Prefix begins every line that the guest says to the host. Other lines are the tests' own output.
	Prefix = "TOOLHOST-VM "
	// JobPath is where the guest finds its job.
	JobPath = "/etc/toolhost-vm.json"
	// EnvVM is set to 1 for every test in the guest: there, a cgroup v2 test has no excuse to skip.
	EnvVM = "TOOLHOST_VM"
	// EnvSystem is set to 1, too, where the guest has a whole system.
	EnvSystem = "TOOLHOST_VM_SYSTEM"
	// SystemUnit is the unit by which systemd runs the job there.
	SystemUnit = "toolhost-vm.service"
)

// Job tells the guest what to run.
type Job struct {
	Packages []Package
	Run      string        // -test.run pattern, empty for all tests
	Skip     string        // -test.skip pattern, empty for none
	Bench    string        // -test.bench pattern; if there is one, benchmarks are run and no tests
	Times    string        // -test.benchtime, empty for Go's default
	Timeout  time.Duration // for each package
	Env      []string      // added to the guest's own
}

// Package is one test binary in the guest.
type Package struct {
	Name   string // as named on the host's command line
	Binary string
	Dir    string // working directory
}

// Result is what became of one package. Tests are counted at the leaves: a test with subtests is counted itself only if it failed. A benchmark counts as a test.
type Result struct {
	Package                 string
	Exit                    int // -1 if the binary could not be run, or died of a signal, or left its output open
	Passed, Skipped, Failed int
}

// String is the result as a line for the console.
func (r Result) String() string {
	return fmt.Sprintf("%spkg=%s exit=%d passed=%d skipped=%d failed=%d", Prefix, r.Package, r.Exit, r.Passed, r.Skipped, r.Failed)
}

// ParseResult reads a line written by Result.String.
func ParseResult(line string) (Result, bool) {
	var r Result
	n, err := fmt.Sscanf(line, Prefix+"pkg=%s exit=%d passed=%d skipped=%d failed=%d", &r.Package, &r.Exit, &r.Passed, &r.Skipped, &r.Failed)
	return r, err == nil && n == 5
}

// DoneLine is the guest's last line; without it the guest's run counts for nothing.
func DoneLine(packages int) string {
	return fmt.Sprintf("%sdone packages=%d", Prefix, packages)
}

// Report collects the guest's lines on the host.
type Report struct {
	Results []Result
	done    string
}

// Add takes one line of the console.
func (r *Report) Add(line string) {
	if result, ok := ParseResult(line); ok {
		r.Results = append(r.Results, result)
	} else if strings.HasPrefix(line, Prefix+"done ") {
		r.done = line
	}
}

// Problems says why the run is not a success; none means that every wanted package ran and passed.
func (r *Report) Problems(wanted []string) []string {
	var problems []string
	if r.done != DoneLine(len(wanted)) {
		problems = append(problems, "the guest's final line is missing: it died or hung before the end")
	}
	results := map[string]Result{}
	for _, result := range r.Results {
		results[result.Package] = result
	}
	for _, name := range wanted {
		result, ran := results[name]
		if problem := result.problem(ran); problem != "" {
			problems = append(problems, name+": "+problem)
		}
	}
	return problems
}

func (r Result) problem(ran bool) string {
	switch {
	case !ran:
		return "no result line: it did not run to its end"
	case r.Exit != 0 || r.Failed > 0:
		return fmt.Sprintf("failed: exit %d, %d failed tests", r.Exit, r.Failed)
	case r.Passed == 0:
		return fmt.Sprintf("not one test passed (%d skipped): that proves nothing", r.Skipped)
	}
	return ""
}
