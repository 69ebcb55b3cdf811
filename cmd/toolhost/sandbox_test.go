package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/escape"
)

// Roles of the test binary.
const (
	asToolhost = "as-toolhost"
	asProbe    = "as-probe"
	asNothing  = "as-nothing"
	asUser     = "as-user"
)

// toolhost runs the command line and returns its standard output.
func toolhost(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(testBinary(t), append([]string{asToolhost}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "SECRET="+canary)
	if err := cmd.Run(); err != nil {
		t.Fatalf("toolhost %s: %v\n%s%s", strings.Join(args, " "), err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.Bytes()
}

// canary is in the environment of everything on the host that belongs to a
// test.
const canary = "THCANARY-7b1f"

func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	nothingEscapes(t, escape.Names()...)
}

// What a call was granted of the network it cannot widen: group N, beside those that
// grants have a part in.
func TestNothingEscapesWithGrants(t *testing.T) {
	t.Parallel()
	nothingEscapes(t, "fds", "namespaces", "processes", "grants")
}

// withGrants are names and an address, and the ports of one that is taken whole.
var withGrants = []string{"--net", "granted.example", "--net", "*.granted.example:443", "--net", "192.0.2.7:22"}

func nothingEscapes(t *testing.T, groups ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("its probes are in other processes, which the race detector does not see")
	}
	self := testBinary(t)
	bait, err := escape.LayBait(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer bait.Close()
	expect := bait.Expect
	expect.Sandboxed, expect.Canary, expect.UID, expect.GID = true, canary, 1000, 1000
	expect.Bound = []string{"/.toolhost", "/run", "/run/toolhost", self}
	flags, least := []string{"exec", "--quiet", "--timeout", "10m", "--pids", "256"}, 500
	if len(groups) < len(escape.Names()) {
		flags, least = append(flags, withGrants...), 20
	}
	args := append(append(flags, "--", self, asProbe), expect.Args(groups...)...)
	facts, escaped, err := escape.Judge(bytes.NewReader(toolhost(t, args...)), groups...)
	if err != nil {
		t.Fatal(err)
	}
	scoped := receipt(t).LandlockABI >= 6
	for _, fact := range escaped {
		if !scoped && signalsAdapter(fact) {
			continue
		}
		t.Errorf("escaped: %+v", fact)
	}
	if facts < least {
		t.Errorf("only %d facts", facts)
	}
	t.Logf("%d facts, %d escaped", facts, len(escaped))
}

// receipt is that of a call with default policy.
func receipt(t *testing.T) api.Receipt {
	t.Helper()
	var result api.Result
	if err := json.Unmarshal(toolhost(t, "exec", "--json", "--", testBinary(t), asNothing), &result); err != nil {
		t.Fatal(err)
	}
	return result.Sandbox
}

// signalsAdapter: without Landlock's scopes, which the receipt then misses, a
// command can signal the adapter that runs it, and so end its own call.
func signalsAdapter(f escape.Fact) bool {
	return f.Probe == "processes" && (f.Case == "low pids that take a signal" ||
		strings.Contains(f.Case, "kill of ancestor") || strings.Contains(f.Case, "signal of ancestor"))
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
