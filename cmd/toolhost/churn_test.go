package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

const (
	// churnAtOnce calls are under way at any time.
	churnAtOnce = 16
	// maxRounds is how often the host is measured; the first round warms it up.
	maxRounds = 10
	// maxTold bounds how many wrong results are shown.
	maxTold = 20
	// poured is more than a result keeps of a stream.
	poured = 2 << 20
)

// TestChurn makes TOOLHOST_CHURN_CALLS short lives, plugins and commands, 16 at
// once: most end at a timeout of 1 to 50 ms, some by an abort, some write more
// than is kept. Each has one result that fits what was done to it, host and
// zygote need no more than before, and nothing is left. TOOLHOST_CHURN_SEED
// makes the same calls again. It runs alone: it counts goroutines.
func TestChurn(t *testing.T) {
	wholeSystem(t)
	calls := fromEnv("TOOLHOST_CHURN_CALLS", 0)
	if calls == 0 {
		t.Skip("takes its time: set TOOLHOST_CHURN_CALLS to how many, such as 2000, or run make churn")
	}
	seed := fromEnv("TOOLHOST_CHURN_SEED", int(time.Now().UnixNano()))
	t.Logf("%d calls, seed %d", calls, seed)
	c := &churn{T: t, seed: uint64(seed), mark: "TOOLHOST_CHURN=" + rand.Text(), statuses: map[string]int{}}
	mounts, dir := mountsOf(t), t.TempDir()
	host, err := supervisor.New(t.Context(), supervisor.Config{
		RuntimeDir: dir, Admission: supervisor.Admission{Running: churnAtOnce, Queue: calls, Wait: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.host = host
	place := host.Host().Place
	c.rounds(calls)
	if c.wrong > 0 {
		t.Errorf("%d results of %d calls are wrong", c.wrong, calls)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	c.nothingLeft(dir, place, mounts)
	for _, line := range slices.Sorted(maps.Keys(c.statuses)) {
		t.Logf("%7d %s", c.statuses[line], line)
	}
}

// fromEnv is a variable's, or one for where there is none.
func fromEnv(variable string, without int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return without
}

type churn struct {
	*testing.T
	host *supervisor.Supervisor
	seed uint64
	mark string // in the environment of all tools

	mu       sync.Mutex
	statuses map[string]int // by kind, fate and status
	wrong    int
}

// rounds makes the calls and measures after each round.
func (c *churn) rounds(calls int) {
	var first, now footing
	rounds := max(2, min(maxRounds, calls/100))
	for round := range rounds {
		var workers sync.WaitGroup
		begin, end := calls*round/rounds, calls*(round+1)/rounds
		for worker := range churnAtOnce {
			workers.Go(func() {
				for n := begin + worker; n < end; n += churnAtOnce {
					c.one(n)
				}
			})
		}
		workers.Wait()
		now = c.measure(first)
		c.Logf("after %d calls: %s", end, now)
		if round == 0 {
			first = now
		}
	}
	now.compare(c.T, first)
}

// life is a kind of call. It tells of each what is wrong with a complete result
// of it; one without that never ends by itself.
type life struct {
	name    string
	request func(text string) supervisor.Request
	whole   func(r *api.Result, text string) string
}

var lives = []life{
	{"plugin echo", ofPlugin("echo"), saidContent},
	{"plugin pour", ofPlugin("pour"), pouredOut},
	{"plugin deaf", ofPlugin("deaf"), nil},
	{"kept echo", func(text string) supervisor.Request {
		r := ofPlugin("echo")(text)
		r.Keep = &supervisor.Keep{Idle: 50 * time.Millisecond}
		return r
	}, saidContent},
	{"command echo", ofCommand("echo", "$TEXT"), saidStdout},
	{"command pour", ofCommand("sh", "-c", "yes $TEXT | head -c "+strconv.Itoa(poured)), pouredOut},
	{"command deaf", ofCommand("sh", "-c", "trap '' TERM; sleep 1h & sleep 1h"), nil},
}

func ofPlugin(tool string) func(string) supervisor.Request {
	return func(text string) supervisor.Request {
		arguments, _ := json.Marshal(churnArgs{text})
		return supervisor.Request{Tool: supervisor.Tool{Path: os.Args[0], Args: []string{asChurn}, Name: tool}, Arguments: arguments}
	}
}

func ofCommand(argv ...string) func(string) supervisor.Request {
	return func(text string) supervisor.Request {
		argv := slices.Clone(argv)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "$TEXT", text)
		}
		return supervisor.Request{Command: &supervisor.Command{Argv: argv}}
	}
}

func saidContent(r *api.Result, text string) string {
	if r.Text() != text {
		return fmt.Sprintf("it says %q, want %q", r.Text(), text)
	}
	return ""
}

func saidStdout(r *api.Result, text string) string {
	if r.Output.Stdout.Head != text+"\n" {
		return fmt.Sprintf("it wrote %q, want %q", r.Output.Stdout.Head, text)
	}
	return ""
}

func pouredOut(r *api.Result, text string) string {
	out := r.Output.Stdout
	if out.SeenBytes != poured || out.KeptBytes+out.DroppedBytes != poured || !strings.HasPrefix(out.Head, text+"\n") {
		return fmt.Sprintf("%d bytes seen, %d kept, %d dropped, begins %.40q", out.SeenBytes, out.KeptBytes, out.DroppedBytes, out.Head)
	}
	return ""
}

// one makes the call of a number; its kind and fate follow from that and the seed.
func (c *churn) one(n int) {
	random := mathrand.New(mathrand.NewPCG(c.seed, uint64(n)))
	kind, text := lives[random.IntN(len(lives))], "call-"+strconv.Itoa(n)
	timeout, wait, fate := time.Minute, time.Duration(0), "whole"
	switch dice := random.IntN(10); {
	case dice < 7:
		timeout, fate = time.Duration(1+random.IntN(50))*time.Millisecond, "hurried"
	case dice < 9 || kind.whole == nil:
		wait, fate = time.Duration(random.IntN(100_000))*time.Microsecond, "aborted"
	}
	events := make(chan api.Event, 64)
	r := kind.request(text)
	r.ID, r.Env, r.Events, r.EventOutputBytes = text, []string{c.mark}, events, -1
	r.Timeouts = []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: timeout, Detail: "churn"}}
	r.Grace = time.Duration(1+random.IntN(20)) * time.Millisecond
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	call := c.host.Start(ctx, r)
	if fate == "aborted" {
		abortLater(call, cancel, wait, random.IntN(3))
	}
	result := call.Result()
	wrong := judge(kind, fate, text, timeout, result, events)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[kind.name+", "+fate+": "+string(result.Status)]++
	if wrong == "" {
		return
	}
	if c.wrong++; c.wrong <= maxTold {
		raw, _ := json.Marshal(result)
		c.Errorf("call %d, %s, %s after %s or %s: %s\n%.2000s", n, kind.name, fate, timeout, wait, wrong, raw)
	}
}

// abortLater aborts in one of three ways, unless the call is over before.
func abortLater(call *supervisor.Call, cancel func(), wait time.Duration, way int) {
	select {
	case <-time.After(wait):
	case <-call.Done():
	}
	switch way {
	case 0:
		cancel()
	case 1:
		call.Abort(api.ReasonUser)
	case 2:
		call.Abort(api.ReasonParent)
		call.Abort(api.ReasonParent)
	}
}

// judge says what is untrue in a result.
func judge(kind life, fate, text string, timeout time.Duration, r *api.Result, events <-chan api.Event) string {
	ended := map[string]api.Status{"whole": api.StatusOK, "hurried": api.StatusTimeout, "aborted": api.StatusCancelled}[fate]
	switch {
	case r.Status == api.StatusOK && kind.whole == nil:
		return "it ended well, and never ends by itself"
	case r.Status == api.StatusOK:
		if wrong := kind.whole(r, text); wrong != "" {
			return wrong
		}
	case r.Status != ended:
		return fmt.Sprintf("status %s, want %s", r.Status, ended)
	case r.Kill.Survivors != 0 || r.Message == "":
		return "survivors, or no message"
	case fate == "hurried" && r.Timing.ElapsedMs < timeout.Milliseconds():
		return "it timed out too early"
	}
	if r.CallID != text || r.Timing.TimeoutMs == nil || *r.Timing.TimeoutMs != timeout.Milliseconds() {
		return "another call's id or timeout"
	}
	return oneEnd(r, events)
}

// oneEnd wants exactly one event that says that the call is over.
func oneEnd(r *api.Result, events <-chan api.Event) string {
	want, other, ends := api.EventFinished, api.EventFailed, 0
	if r.Status != api.StatusOK {
		want, other = other, want
	}
	for len(events) > 0 {
		switch e := <-events; e.Kind {
		case want:
			ends++
		case other:
			return "an event says " + string(other)
		}
	}
	if ends != 1 {
		return fmt.Sprintf("%d events say %s", ends, want)
	}
	return ""
}

// asChurn makes the test binary the plugin of TestChurn.
const asChurn = "as-churn"

type churnArgs struct {
	Text string `json:"text"`
}

func playChurn() {
	serve := func(name string, do func(string, *plugin.Output) error) plugin.Registered {
		return plugin.NewTool(plugin.Tool{Name: name}, func(_ context.Context, in churnArgs, out *plugin.Output) (struct{}, error) {
			return struct{}{}, do(in.Text, out)
		})
	}
	plugin.Serve(
		serve("echo", func(text string, out *plugin.Output) error { return out.Text(text) }),
		serve("pour", func(text string, _ *plugin.Output) error {
			lines := bytes.Repeat([]byte(text+"\n"), poured/len(text))
			_, err := os.Stdout.Write(lines[:poured])
			return err
		}),
		serve("deaf", func(string, *plugin.Output) error {
			signal.Ignore(syscall.SIGTERM)
			for {
				time.Sleep(time.Hour)
			}
		}),
	)
}
