package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/escape"
)

// Roles of the test binary.
const (
	asToolhost = "as-toolhost"
	asProbe    = "as-probe"
)

// toolhost runs the command line and returns its standard output.
func toolhost(t *testing.T, args ...string) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{asToolhost}, args...)...)
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bait, err := escape.LayBait(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer bait.Close()
	expect := bait.Expect
	expect.Sandboxed, expect.Canary, expect.UID, expect.GID = true, canary, 1000, 1000
	expect.Bound = []string{"/.toolhost", "/run", "/run/toolhost", self}
	args := append([]string{"exec", "--quiet", "--timeout", "2m", "--pids", "256", "--", self, asProbe}, expect.Args()...)
	facts, escaped, err := escape.Judge(bytes.NewReader(toolhost(t, args...)), escape.Names()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range escaped {
		t.Errorf("escaped: %+v", fact)
	}
	if facts < 500 {
		t.Errorf("only %d facts", facts)
	}
	t.Logf("%s facts, %d escaped", strconv.Itoa(facts), len(escaped))
}
