package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// asLimited runs toolhost where the host's hard limits are low.
const asLimited = "as-limited"

// low are limits that many machines and containers have lower than calls.
var low = map[int]uint64{unix.RLIMIT_MEMLOCK: 64 << 10, unix.RLIMIT_SIGPENDING: 100, unix.RLIMIT_MSGQUEUE: 0}

func becomeLimited(args []string) {
	for resource, limit := range low {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(run(args))
}

// A call keeps a limit of the host's that is stricter than its own.
func TestLowHardLimitsAreKept(t *testing.T) {
	t.Parallel()
	needShell(t)
	out, err := exec.Command(testBinary(t), asLimited, "exec", "--", "cat", "/proc/self/limits").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{`Max locked memory +65536 +65536 `, `Max pending signals +100 +100 `, `Max msgqueue size +0 +0 `} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}
