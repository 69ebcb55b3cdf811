package siege

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

const (
	// pace is how often each neighbour makes a call.
	pace = 250 * time.Millisecond
	// maxFailures bounds what is told of calls that failed.
	maxFailures = 20
)

// neighbour is a well-behaved client; call makes one call with a text, and
// gives what came back.
type neighbour struct {
	name string
	call func(ctx context.Context, text string) (string, error)
}

// settle has the neighbours come; those of MCP stay connected.
func (d *daemon) settle() []neighbour {
	d.t.Helper()
	far, err := client.New(client.Options{URL: "http://" + d.target.TCP, Token: d.target.Token})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(far.Close)
	return []neighbour{
		{"HTTP, a command", func(ctx context.Context, text string) (string, error) {
			return inTurn(ctx, d.client, "greet", text, false)
		}},
		{"HTTP events, a plugin", func(ctx context.Context, text string) (string, error) { return inTurn(ctx, far, "echo", text, true) }},
		{"MCP " + mcpOld, d.overMCP(mcpOld)},
		{"MCP " + mcpNew, d.overMCP(mcpNew)},
	}
}

// inTurn makes the call in a turn of its own.
func inTurn(ctx context.Context, c *client.Client, tool, text string, events bool) (string, error) {
	raw, _ := json.Marshal(map[string]string{"name": text})
	run := c.RunTurn
	if events {
		run = func(ctx context.Context, spec api.TurnSpec, calls []api.Call) ([]*api.Result, error) {
			return c.RunTurnEvents(ctx, spec, calls, func(api.Record) {})
		}
	}
	results, err := run(ctx, api.TurnSpec{Headless: true}, []api.Call{{ID: "1", Tool: tool, Arguments: raw}})
	switch {
	case err != nil:
		return "", err
	case !results[0].OK():
		return "", errors.New(results[0].Message)
	}
	return results[0].Text(), nil
}

func (d *daemon) overMCP(version string) func(context.Context, string) (string, error) {
	d.t.Helper()
	g, err := d.target.connectMCP(d.t.Context(), neighbourName, version, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(g.close)
	return func(ctx context.Context, text string) (said string, err error) {
		r, err := g.CallTool(ctx, &mcpsdk.CallToolParams{Name: "greet", Arguments: map[string]string{"name": text}})
		if err != nil {
			return "", err
		}
		for _, c := range r.Content {
			if one, ok := c.(*mcpsdk.TextContent); ok {
				said += one.Text
			}
		}
		if r.IsError {
			return "", errors.New(said)
		}
		return said, nil
	}
}

// days are what the neighbours have seen in a time: how long each call took.
type days struct {
	mu     sync.Mutex
	took   map[string][]time.Duration
	failed []string
	ready  []time.Duration
	unsaid int // times when it said that it is not ready
}

// live has the neighbours make calls until ctx ends, and asks whether the daemon
// is ready. wait is for the last calls of all.
func (d *daemon) live(ctx context.Context, neighbours []neighbour) (seen *days, wait func()) {
	seen = &days{took: map[string][]time.Duration{}}
	var all sync.WaitGroup
	each := func(do func(n int)) {
		all.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					do(n)
				}
			}
		})
	}
	for _, one := range neighbours {
		each(func(n int) { seen.call(d.t.Context(), one, fmt.Sprint(time.Now().UnixNano(), "-", n)) })
	}
	each(func(int) { seen.ask(d.t.Context(), d.client) })
	each(func(int) { d.look() })
	return seen, all.Wait
}

func (s *days) call(ctx context.Context, one neighbour, text string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	said, err := one.call(ctx, text)
	took := time.Since(began)
	if err == nil && !strings.Contains(said, text) {
		err = fmt.Errorf("it says %.200q", said)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took[one.name] = append(s.took[one.name], took)
	if err != nil {
		s.failed = append(s.failed, fmt.Sprintf("%s after %s: %v", one.name, took.Round(time.Millisecond), err))
	}
}

func (s *days) ask(ctx context.Context, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	err := c.Ready(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, time.Since(began))
	if err != nil {
		s.unsaid++
		s.failed = append(s.failed, "ready: "+err.Error())
	}
}

// check wants every call of a neighbour to be as in quiet times, but slower.
func (s *days) check(t *testing.T, when string) {
	t.Helper()
	for _, failure := range s.failed[:min(len(s.failed), maxFailures)] {
		t.Errorf("%s: %s", when, failure)
	}
	if len(s.failed) > maxFailures {
		t.Errorf("%s: %d failures in all", when, len(s.failed))
	}
}

// quantile of durations, of which there may be none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
