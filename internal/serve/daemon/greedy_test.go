package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
		stop := greedy.beGreedy(t)
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

// beGreedy has a process of its own do all of it, and returns when it is under way. stop
// ends it, and says what there was.
func (a *agent) beGreedy(t *testing.T) (stop func() string) {
	t.Helper()
	raw, _ := json.Marshal(greedyTarget{a.url, a.token})
	// It has next to no CPU time beside the daemon, as if it were on a machine of its own.
	cmd := exec.Command("nice", "-n", "19", os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), asGreedy+"="+string(raw)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// Where sessions are scheduled as groups, nice values count within one only (sched(7)).
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte("19"), 0)
	lines := bufio.NewReader(told)
	if line, err := lines.ReadString('\n'); line != underWay {
		t.Fatalf("the greedy one: %q %v", line, err)
	}
	return func() string {
		_ = in.Close()
		said, err := io.ReadAll(lines)
		for _, one := range mustActive(t, a) {
			_ = a.client.End(wait.Context(t), one.TurnID)
		}
		wait.Until(t, "its calls are over", func() bool { return len(mustActive(t, a)) == 0 })
		if err != nil || bytes.Contains(said, []byte("wrong")) {
			t.Errorf("the greedy one: %s %v", said, err)
		}
		return fmt.Sprintf("the greedy one: %s", said)
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

// asGreedy in the environment makes the test binary the greedy agent of the target that
// it names in JSON.
const asGreedy = "TOOLHOST_TEST_GREEDY"

// underWay is its first line; another with what there was follows its end.
const underWay = "under way\n"

type greedyTarget struct{ URL, Token string }

// greedy is the greedy agent.
type greedy struct {
	greedyTarget
	client *client.Client

	mu     sync.Mutex
	counts map[string]int
	ready  func() // it is under way
}

// playGreedy is greedy until stdin ends.
func playGreedy(raw string) int {
	g := &greedy{counts: map[string]int{}, ready: sync.OnceFunc(func() { fmt.Print(underWay) })}
	err := json.Unmarshal([]byte(raw), &g.greedyTarget)
	if err == nil {
		g.client, err = client.New(client.Options{URL: g.URL, Token: g.Token})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range greedyCalls / 100 {
		all.Go(func() { g.queue(ctx, g.begin(ctx)) })
	}
	watched := g.begin(ctx)
	for range greedyStreams {
		all.Go(func() { _ = g.client.Watch(ctx, watched, 0, func(api.Record) bool { return true }) })
	}
	for range greedyBodies {
		all.Go(func() { g.sendBodies(ctx, watched) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	fmt.Println(g.counts)
	return 0
}

const (
	callEnded    = "calls that ended ok"
	bodyAnswered = "bodies answered"
)

func (g *greedy) count(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts[what]++; g.counts[callEnded] > 0 && g.counts[bodyAnswered] > 0 {
		g.ready()
	}
}

func (g *greedy) wrong(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "the greedy one: "+format+"\n", args...)
	g.count("wrong")
}

func (g *greedy) begin(ctx context.Context) string {
	begun, err := g.client.Begin(ctx, api.TurnSpec{Headless: true})
	if err != nil {
		g.wrong("a turn: %v", err)
		return ""
	}
	return begun.TurnID
}

// queue keeps 100 calls of a turn under way.
func (g *greedy) queue(ctx context.Context, turn string) {
	for n := 0; ctx.Err() == nil; n++ {
		var calls []api.Call
		for i := range 100 {
			calls = append(calls, api.Call{ID: fmt.Sprintf("%d-%d", n, i), Tool: "lines", Arguments: fmt.Appendf(nil, `{"text":"%d-%d"}`, n, i)})
		}
		results, err := g.client.Run(ctx, turn, calls)
		for _, r := range results {
			g.count("calls that ended " + string(r.Status))
		}
		if refused, ok := errors.AsType[*api.Error](err); ok && ctx.Err() == nil {
			g.wrong("calls: %v", refused)
			return
		} else if err != nil { // it has so little CPU time that connections time out
			g.count("batches whose connection was lost")
		}
	}
}

// sendBodies sends bodies of 8 MiB that are JSON to their end, and refused for what
// they say.
func (g *greedy) sendBodies(ctx context.Context, turn string) {
	const before, after = `{"calls":[],"nosuch":"`, `"}`
	body := []byte(before + strings.Repeat("x", 8<<20-len(before)-len(after)) + after)
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, "POST", g.URL+"/api/turns/"+turn+"/calls", bytes.NewReader(body))
		if err != nil {
			g.wrong("%v", err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+g.Token)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				g.count("bodies without an answer")
			}
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusBadRequest:
			g.count(bodyAnswered)
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			g.count("bodies put off")
		default:
			g.wrong("a body of 8 MiB: %s", response.Status)
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
