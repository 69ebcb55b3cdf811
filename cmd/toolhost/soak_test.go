package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// soakName is the stubborn tool's in this run: others run it, too.
var soakName = "soak" + rand.Text()[:8]

// TestSoak runs the stubborn tool TOOLHOST_SOAK_RUNS times, 16 at once, and
// looks for what is left. The timeout lets all 16 trees come up; with a shorter
// one, TOOLHOST_SOAK_TIMEOUT, they are killed as far as they have come.
func TestSoak(t *testing.T) {
	t.Parallel()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds tools with go, which the VM does not have")
	}
	if os.Getenv("TOOLHOST_SOAK_RUNS") == "" {
		t.Skip("one of `make soak`")
	}
	runs, err := strconv.Atoi(os.Getenv("TOOLHOST_SOAK_RUNS"))
	if err != nil {
		t.Fatal(err)
	}
	stubborn := filepath.Join(t.TempDir(), soakName)
	if err := os.Link(filepath.Join(toolsFolder(t), "stubborn"), stubborn); err != nil {
		t.Fatal(err)
	}
	host, err := supervisor.New(t.Context(), supervisor.Config{
		RuntimeDir: t.TempDir(), Admission: supervisor.Admission{Running: 16, Queue: runs, Wait: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	timeout, reaped := 8*time.Second, 51
	if short, err := time.ParseDuration(os.Getenv("TOOLHOST_SOAK_TIMEOUT")); err == nil {
		timeout, reaped = short, 0
	}
	var calls sync.WaitGroup
	for range runs {
		calls.Go(func() { soakOnce(t, host, stubborn, timeout, reaped) })
	}
	calls.Wait()
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if left := running(soakName); left != 0 {
		t.Errorf("%d processes left after %d runs", left, runs)
	}
}

// soakOnce expects a number of processes that were reaped, 0 for any.
func soakOnce(t *testing.T, host *supervisor.Supervisor, stubborn string, timeout time.Duration, reaped int) {
	result := host.Call(t.Context(), supervisor.Request{
		Tool: supervisor.Tool{Path: stubborn}, Grace: 500 * time.Millisecond,
		Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: timeout}},
	})
	if result.Status != api.StatusTimeout || result.Kill.Survivors != 0 || reaped > 0 && result.Kill.Reaped != reaped {
		t.Errorf("status %s, kill %+v: %s", result.Status, result.Kill, result.Message)
	}
}

// running counts the processes of a name.
func running(name string) (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range paths {
		if raw, err := os.ReadFile(path); err == nil && string(bytes.TrimSpace(raw)) == name {
			n++
		}
	}
	return n
}
