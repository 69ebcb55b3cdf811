package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const (
	greedyStage = "greedy"
	// maxGreedyRatio is how much slower one identity's calls may be by what another does.
	maxGreedyRatio = 3
	// greedyRounds are measured, each without the greedy one and then with it.
	greedyRounds = 3
	// quietLoad is that of a machine on which times say something.
	quietLoad = 2

	greedyCalls   = 1000
	greedyStreams = 300
	greedyBodies  = 4 // under way at once
)

// TestGreedy: one agent makes a call a second while another has 1,000 calls queued,
// sends bodies of 8 MiB without end and holds 300 streams. All calls of both go well, and
// the first one's are at most three times as slow.
func TestGreedy(t *testing.T) {
	stage.Of(t, greedyStage)
	loaded := load(t) >= quietLoad
	w := newWorld(t, "admission: {queue: 2000, wait: 10m}\nturn: {parallel: 100, maxCalls: 100000}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	polite, greedy := bearerOf(t, d, "polite"), bearerOf(t, d, "greedy")
	turn := polite.begin()
	polite.mustRun(turn, "lines", map[string]string{"text": "warm"})
	seconds := 15
	if text := os.Getenv("TOOLHOST_GREEDY_SECONDS"); text != "" {
		seconds, _ = strconv.Atoi(text)
	}
	var ratios []float64
	for range greedyRounds {
		quiet := callEachSecond(polite, turn, seconds)
		stop := greedy.beGreedy(t, d)
		beside := callEachSecond(polite, turn, seconds)
		t.Log(stop())
		ratio := float64(p99(beside)) / float64(p99(quiet))
		t.Logf("a call a second alone: median %s, p99 %s; beside the greedy one: median %s, p99 %s; ratio %.2f",
			median(quiet), p99(quiet), median(beside), p99(beside), ratio)
		ratios = append(ratios, ratio)
	}
	ratio := median(ratios)
	t.Logf("p99 is %.2f times as long beside the greedy one (median of %d rounds; at most %d is asked)", ratio, greedyRounds, maxGreedyRatio)
	switch {
	case ratio <= maxGreedyRatio:
	case loaded:
		t.Logf("this machine is busy with something else (load %.1f): that says nothing", load(t))
	default:
		t.Errorf("the calls of one are %.2f times as slow by what another does, want at most %d", ratio, maxGreedyRatio)
	}
	d.endsInTime()
}

// load is the machine's load of the last minute.
func load(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseFloat(strings.Fields(string(raw))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// agent is a client with a token of its own.
type agent struct {
	*world
	url, token string
}

// bearerOf makes a token for calls, and a client that bears it.
func bearerOf(t *testing.T, d *process, name string) *agent {
	t.Helper()
	secret, _, err := tokens.Open(d.State).Create(tokens.Spec{Name: name, Roles: []access.Role{access.Call}, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	own := *d.world
	if own.client, err = client.New(client.Options{URL: d.tcp(), Token: secret}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.client.Close)
	return &agent{&own, d.tcp(), secret}
}

// callEachSecond gives how long each call took.
func callEachSecond(a *agent, turn string, seconds int) (took []time.Duration) {
	a.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range seconds {
		began := <-tick.C
		a.mustRun(turn, "lines", map[string]string{"text": began.String()}) // never the same call
		took = append(took, time.Since(began))
	}
	return took
}

func sorted[T int64 | float64 | time.Duration](list []T) []T {
	return slices.Sorted(slices.Values(list))
}

func median[T int64 | float64 | time.Duration](list []T) T { return sorted(list)[len(list)/2] }

// p99 is the one that 99 of 100 do not exceed; of fewer, the greatest.
func p99(list []time.Duration) time.Duration { return sorted(list)[(len(list)*99+99)/100-1] }

// beGreedy has all of it begin, and returns when it is under way. stop ends it, and says
// what there was.
func (a *agent) beGreedy(t *testing.T, d *process) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(wait.Context(t))
	var all sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
	}
	for range greedyCalls / 100 {
		turn := a.begin()
		all.Go(func() { a.queue(ctx, turn, count) })
	}
	watched := a.begin()
	for range greedyStreams {
		all.Go(func() {
			_ = a.client.Watch(ctx, watched, 0, func(api.Record) bool { return true })
		})
	}
	for range greedyBodies {
		all.Go(func() { a.sendBodies(ctx, watched, count) })
	}
	wait.Until(t, "the greedy one has its calls queued and its bodies sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return counts["calls that ended ok"] > 0 && counts["bodies answered"] > 0
	})
	return func() string {
		cancel()
		all.Wait()
		for _, one := range mustActive(t, a) {
			_ = a.client.End(wait.Context(t), one.TurnID)
		}
		wait.Until(t, "its calls are over", func() bool { return len(mustActive(t, a)) == 0 })
		if counts["wrong"] > 0 {
			t.Errorf("%v", counts)
		}
		return fmt.Sprintf("the greedy one: %v", counts)
	}
}

func mustActive(t *testing.T, a *agent) []api.Turn {
	t.Helper()
	list, err := a.client.Active(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// queue keeps 100 calls of a turn under way.
func (a *agent) queue(ctx context.Context, turn string, count func(string)) {
	for n := 0; ctx.Err() == nil; n++ {
		var calls []api.Call
		for i := range 100 {
			calls = append(calls, api.Call{ID: fmt.Sprintf("%d-%d", n, i), Tool: "lines", Arguments: fmt.Appendf(nil, `{"text":"%d-%d"}`, n, i)})
		}
		results, err := a.client.Run(ctx, turn, calls)
		for _, r := range results {
			count("calls that ended " + string(r.Status))
		}
		if err != nil && ctx.Err() == nil {
			count("wrong")
			a.t.Errorf("the greedy one's calls: %v", err)
			return
		}
	}
}

// sendBodies sends bodies of 8 MiB that are JSON to their end, and refused for what
// they say.
func (a *agent) sendBodies(ctx context.Context, turn string, count func(string)) {
	const before, after = `{"calls":[],"nosuch":"`, `"}`
	body := []byte(before + strings.Repeat("x", 8<<20-len(before)-len(after)) + after)
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, "POST", a.url+"/api/turns/"+turn+"/calls", bytes.NewReader(body))
		if err != nil {
			a.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+a.token)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				count("bodies without an answer")
			}
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusBadRequest:
			count("bodies answered")
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			count("bodies put off")
		default:
			count("wrong")
			a.t.Errorf("a body of 8 MiB: %s", response.Status)
		}
	}
}

// endsInTime has the daemon stop.
func (p *process) endsInTime() {
	p.t.Helper()
	began := time.Now()
	p.signal(15)
	if code := p.code(); code != 0 {
		p.t.Errorf("exit status %d", code)
	}
	p.t.Logf("the daemon ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
	wait.Until(p.t, "nothing is left", func() bool { return p.left() == 0 })
}
