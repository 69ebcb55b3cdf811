package fleet_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet"
	"github.com/toolhost/toolhost/fleet/fleettest"
	"github.com/toolhost/toolhost/fleet/worker"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// ticks is how many lines the calls write beside which a server is killed, 5 ms apart.
const ticks = 600

// maxStall is far above the second that callers may see nothing for; what was seen is logged.
const maxStall = 20 * time.Second

// One of three NATS servers is killed beside calls that stream, that of the worker or that
// of the caller. No call is lost, and none of its output.
func TestAServerIsKilled(t *testing.T) {
	stage.Of(t, "fleet")
	for i, whose := range []string{"the worker's", "the caller's"} {
		t.Run(whose, func(t *testing.T) { killServer(t, i) })
	}
}

func killServer(t *testing.T, which int) {
	dir := t.TempDir()
	caller, own := newKey(t, filepath.Join(dir, "caller")), newKey(t, filepath.Join(dir, "w1")).Public()
	servers, err := fleettest.Start(fleettest.Config{Number: 3, Parties: []fleettest.Party{{Key: caller.Public()}, {Key: own, Worker: "w1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	const calls = 4
	w, err := worker.Open(t.Context(), worker.Config{
		Name: "w1", URL: servers.List[0].URL, KeyFile: filepath.Join(dir, "w1"), Callers: []string{caller.Public()}, Dir: filepath.Join(dir, "run"), Slots: 2 * calls, Logger: logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	f, err := fleet.Open(t.Context(), fleet.Config{URL: servers.List[1].URL, Key: caller, WorkersOnly: true, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	(&world{t: t}).thereFor(f, "w1")
	begun := make(chan struct{}, calls)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { streamThrough(t, f, begun) })
	}
	for range calls {
		<-begun
	}
	servers.List[which].Kill()
	for range 20 { // and short ones all the while
		if got := f.Call(wait.Context(t), shell("echo x")); !got.OK() {
			t.Errorf("%s %s", got.Status, got.Message)
		}
	}
	all.Wait()
}

// streamThrough makes a call, and checks that all of its output comes.
func streamThrough(t *testing.T, f *fleet.Fleet, begun chan<- struct{}) {
	events := make(chan api.Event, 10_000)
	r := shell(fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; sleep 0.005; done", ticks))
	r.Events = events
	c := f.Start(t.Context(), r)
	last, stall := time.Time{}, time.Duration(0)
	for over := false; !over; {
		select {
		case e := <-events:
			if e.Kind != api.EventOutput {
				continue
			}
			if last.IsZero() {
				begun <- struct{}{}
			} else {
				stall = max(stall, time.Since(last))
			}
			last = time.Now()
		case <-c.Done():
			over = true
		case <-wait.Context(t).Done():
			t.Error("it never ends")
			return
		}
	}
	t.Logf("the longest silence took %s", stall)
	got := c.Result()
	if out := strings.Fields(got.Output.Stdout.Head); got.Status != api.StatusOK || len(out) != ticks || stall > maxStall {
		t.Errorf("%s, %d lines, silent for %s: %s", got.Status, len(out), stall, got.Message)
	}
}
