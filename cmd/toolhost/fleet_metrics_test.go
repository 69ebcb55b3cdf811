//go:build !nofleet

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// scrape returns the daemon's metrics.
func (s *served) scrape(t *testing.T) string {
	t.Helper()
	token, err := os.ReadFile(s.token)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	raw, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %v", a.Status, raw, err)
	}
	return string(raw)
}

// A call that a worker makes counts as one of the daemon's, and one that waits for it as
// waiting, in the metrics as in the API.
func TestMetricsOfCallsOnAWorker(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	w1, caller := filepath.Join(dir, "w1"), filepath.Join(dir, "caller")
	worker, daemon := newFleetKey(t, w1), newFleetKey(t, caller)
	d := serve(t, fmt.Sprintf(`fleet: {listen: "127.0.0.1:%d", key: %s, local: never, workers: {w1: %s}}
tools:
  wait: {command: [sleep, "1000"]}
`, port, caller, worker))
	startWorker(t, d, nil, "--url", fmt.Sprintf("nats://127.0.0.1:%d", port), "--key", w1, "--caller", daemon, "--dir", filepath.Join(dir, "run"), "--slots", "1")
	turn, err := d.Begin(wait.Context(t), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := d.Run(wait.Context(t), turn.TurnID, []api.Call{{ID: "1", Tool: "wait"}, {ID: "2", Tool: "wait"}})
		over <- err
	}()
	wait.Until(t, "one runs and one waits", func() bool {
		info, err := d.Turn(wait.Context(t), turn.TurnID)
		states := map[string]int{}
		for _, c := range info.CurrentTools {
			states[c.State+" "+c.Worker]++
			if c.StartedAt.IsZero() != (c.State == "queued") {
				t.Errorf("%+v", c)
			}
		}
		return err == nil && states["running w1"] == 1 && states["queued "] == 1
	})
	if got := d.scrape(t); !strings.Contains(got, "\ntoolhost_calls_running 1\n") || !strings.Contains(got, "\ntoolhost_calls_queued 1\n") {
		t.Errorf("while one runs and one waits:\n%s", got)
	}
	if err := d.Abort(wait.Context(t), turn.TurnID); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the call that ran is counted", func() bool {
		got := d.scrape(t)
		return strings.Contains(got, "\ntoolhost_call_start_seconds_count 1\n") && strings.Contains(got, "\ntoolhost_calls_running 0\n")
	})
}
