package fleet_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// suite is the tests of a package that can run over a fleet, built with that and without.
type suite struct {
	t            *testing.T
	name         string
	plain, fleet string
	dir          string // what tests leave that do not end by themselves is in it
}

// The tests of packages supervisor and turn run over fleets: without a worker, with one at
// the server of package engine, and with one at a cluster of three. What no worker can do is
// in beyondWorkers.
func TestSuitesOverFleets(t *testing.T) {
	stage.Of(t, "fleet-suites")
	dir, err := os.MkdirTemp("/var/tmp", "fleet-suites-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"supervisor", "turn"} {
		s := &suite{t: t, name: name, plain: filepath.Join(t.TempDir(), "plain.test"), fleet: filepath.Join(t.TempDir(), "fleet.test"), dir: dir}
		s.build(s.plain)
		s.build(s.fleet, "-tags", "fleetsuite")
		for _, shape := range []string{"local", "embedded", "servers"} {
			t.Run(name+"/"+shape, func(t *testing.T) {
				of := *s
				of.t = t
				of.over(shape)
			})
		}
	}
}

func (s *suite) build(to string, flags ...string) {
	s.t.Helper()
	cmd := exec.Command("go", append(append([]string{"test", "-vet=off", "-c", "-o", to}, flags...), "./"+s.name)...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
}

// run runs a binary's tests, and gives what has become of each, and all that was printed.
func (s *suite) run(binary, shape string, args ...string) (outcomes map[string]string, text string) {
	s.t.Helper()
	cmd := exec.Command(binary, append([]string{"-test.v", "-test.parallel=4"}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join("..", s.name), append(os.Environ(), fleettest.Variable+"="+shape, fleettest.DirVariable+"="+s.dir)
	out, err := cmd.CombinedOutput()
	outcomes = map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`).FindAllStringSubmatch(string(out), -1) {
		outcomes[m[2]] = m[1]
	}
	if err != nil && !slices.Contains(slices.Collect(maps.Values(outcomes)), "FAIL") {
		outcomes["the whole"] = "FAIL"
	}
	return outcomes, string(out)
}

// over runs all tests over a fleet.
func (s *suite) over(shape string) {
	listed := beyondWorkers[s.name]
	if shape == "local" {
		listed = nil
	}
	var names []string
	for name := range listed {
		names = append(names, "^"+strings.ReplaceAll(name, "/", "$/^")+"$")
	}
	slices.Sort(names)
	outcomes, text := s.run(s.fleet, shape, "-test.skip="+strings.Join(names, "|"), "-test.timeout=20m")
	failed := false
	for name, outcome := range outcomes {
		switch outcome {
		case "FAIL":
			failed = true
			s.t.Errorf("%s fails", name)
		case "SKIP":
			s.mayBeSkipped(name)
		}
	}
	if failed || len(outcomes) == 0 {
		s.t.Logf("%s", text)
	}
	for name, of := range listed {
		s.t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&suite{t, s.name, s.plain, s.fleet, s.dir}).mustFail(shape, name, of)
		})
	}
}

// mayBeSkipped wants a test that is skipped over a fleet to be skipped without one.
func (s *suite) mayBeSkipped(name string) {
	if plain, _ := s.run(s.plain, "", "-test.run=^"+strings.ReplaceAll(name, "/", "$/^")+"$"); plain[name] != "SKIP" {
		s.t.Errorf("%s is skipped over a fleet, and without one it comes to %q", name, plain[name])
	}
}

// mustFail wants a listed test to fail, for the reason that the list has.
func (s *suite) mustFail(shape, name string, of beyond) {
	outcomes, text := s.run(s.fleet, shape, fmt.Sprintf("-test.run=^%s$", strings.ReplaceAll(name, "/", "$/^")), "-test.timeout=30s")
	switch {
	case outcomes[name] == "PASS" && of.sometimes:
	case outcomes[name] == "PASS":
		s.t.Errorf("%s passes: take it out of the list", name)
	case outcomes[name] == "SKIP":
		s.t.Errorf("%s is skipped: take it out of the list", name)
	case !strings.Contains(text, of.shows):
		s.t.Errorf("%s fails, and does not show %q:\n%s", name, of.shows, text)
	}
}
