package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// asking are tools that want a name which is not granted: in two connections, and in
// one that gives up after 3 s. What they are let through to does not exist.
const asking = `
tools:
  twice:
    command: [sh, -c, "curl -sS https://asked.invalid/a; curl -sS https://asked.invalid/b"]
    network: {grants: [granted.invalid], ask: true}
  hasty:
    command: [curl, -sS, -m, "3", "https://asked.invalid/"]
    network: {grants: [granted.invalid], ask: true}
`

// wantReached looks at how many connections to the name were let through, and why
// others were not.
func wantReached(t *testing.T, what string, n *api.Network, connections int64, refused string) {
	t.Helper()
	if n == nil {
		t.Errorf("%s: the result has no network", what)
		return
	}
	var through int64
	for _, f := range n.Flows {
		if f.Name == "asked.invalid" && f.Port == 443 && strings.Contains(f.Error, "looking the name up") {
			through += f.Connections
		}
	}
	why := ""
	for _, f := range n.Refused {
		if f.Name == "asked.invalid" && f.Port == 443 {
			why += f.Why
		}
	}
	if through != connections || !strings.Contains(why, refused) || refused == "" && why != "" {
		t.Errorf("%s: %d connections were let through, want %d; refused for %q, want %q", what, through, connections, why, refused)
	}
}

// ask runs one call of a turn, and answers the questions that come; it returns how
// many these were.
func (d *served) ask(t *testing.T, turnID, tool string, answer api.Answer) (r *api.Result, asked int) {
	t.Helper()
	done := make(chan *api.Result, 1)
	go func() {
		results, err := d.Run(t.Context(), turnID, []api.Call{{ID: tool, Tool: tool}})
		if err != nil || len(results) != 1 {
			t.Errorf("%v, %v", results, err)
			results = []*api.Result{{}}
		}
		done <- results[0]
	}()
	seen := map[string]bool{}
	for {
		select {
		case r := <-done:
			return r, len(seen)
		case <-time.After(5 * time.Millisecond):
		}
		open, err := d.Interactions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range open {
			if i.TurnID != turnID || seen[i.ID] {
				continue
			}
			seen[i.ID] = true
			if i.Kind != api.KindApproval || i.Prompt != tool+" wants asked.invalid:443" || i.Policy == nil || strings.Join(i.Policy.Grants, " ") != "granted.invalid others after asking" {
				t.Errorf("%+v, %+v", i, i.Policy)
			}
			if answer.By == "" { // else nobody answers
				if err := d.Answer(t.Context(), i.ID, answer); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestANameOverHTTP(t *testing.T) {
	t.Parallel()
	d := serve(t, asking)
	for what, want := range map[string]struct {
		turn    api.TurnSpec
		answer  api.Answer
		asked   int
		through int64
		refused string
	}{
		"once":     {answer: api.Answer{Approve: true}, asked: 2, through: 2},
		"turn":     {answer: api.Answer{Approve: true, Always: true}, asked: 1, through: 2},
		"denied":   {asked: 1, refused: "a human has denied it"},
		"headless": {turn: api.TurnSpec{Headless: true}, refused: "nobody is there to be asked"},
	} {
		turn, err := d.Begin(t.Context(), want.turn)
		if err != nil {
			t.Fatal(err)
		}
		r, asked := d.ask(t, turn.TurnID, "twice", want.answer)
		wantReached(t, what, r.Network, want.through, want.refused)
		if asked != want.asked {
			t.Errorf("%s: asked %d times, want %d", what, asked, want.asked)
		}
		if what == "turn" { // also in the next call
			r, asked = d.ask(t, turn.TurnID, "twice", api.Answer{})
			if wantReached(t, "the next call", r.Network, 2, ""); asked != 0 {
				t.Errorf("the next call: asked %d times", asked)
			}
		}
		if err := d.End(t.Context(), turn.TurnID); err != nil {
			t.Fatal(err)
		}
	}
}

// The question of a tool that has given up stays open for the turn, and the refusal
// says so.
func TestANameOverHTTPTooLate(t *testing.T) {
	t.Parallel()
	d := serve(t, asking)
	turn, err := d.Begin(t.Context(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	r, asked := d.ask(t, turn.TurnID, "hasty", api.Answer{By: "nobody"})
	wantReached(t, "given up", r.Network, 0, "the question stays open until the turn ends")
	open, err := d.Interactions(t.Context())
	if err != nil || len(open) != 1 || asked != 1 {
		t.Fatalf("%d questions are open, %d were asked, %v", len(open), asked, err)
	}
	if err := d.Answer(t.Context(), open[0].ID, api.Answer{Approve: true}); err != nil {
		t.Fatal(err)
	}
	for n, want := range []int64{1, 0} { // once
		r, asked := d.ask(t, turn.TurnID, "hasty", api.Answer{})
		refused := ""
		if want == 0 {
			refused = "a human has denied it"
		}
		wantReached(t, "approved afterwards", r.Network, want, refused)
		if asked != n {
			t.Errorf("call %d: asked %d times", n, asked)
		}
	}
	r, _ = d.ask(t, turn.TurnID, "hasty", api.Answer{By: "nobody"})
	wantReached(t, "given up again", r.Network, 0, "the question stays open until the turn ends")
	if err := d.End(t.Context(), turn.TurnID); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the question has ended with its turn", func() bool {
		open, err := d.Interactions(t.Context())
		return err == nil && len(open) == 0
	})
}

func TestANameOverMCP(t *testing.T) {
	t.Parallel()
	d := serve(t, asking)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for what, want := range map[string]struct {
			answer  *mcpsdk.ElicitResult
			asked   int64
			through int64
			refused string
		}{
			"once":     {&mcpsdk.ElicitResult{Action: "accept"}, 2, 2, ""},
			"turn":     {&mcpsdk.ElicitResult{Action: "accept", Content: map[string]any{"always": true}}, 1, 2, ""},
			"declined": {&mcpsdk.ElicitResult{Action: "decline"}, 1, 0, "a human has denied it"},
			"headless": {nil, 0, 0, "nobody is there to be asked"},
		} {
			what = version + ", " + what
			var asked atomic.Int64
			n := d.elicit(t, version, want.answer, &asked)
			if wantReached(t, what, n, want.through, want.refused); asked.Load() != want.asked {
				t.Errorf("%s: asked %d times, want %d", what, asked.Load(), want.asked)
			}
		}
	}
}

// elicit calls the tool for a client that gives one answer, or that cannot be asked.
func (d *served) elicit(t *testing.T, version string, answer *mcpsdk.ElicitResult, asked *atomic.Int64) *api.Network {
	t.Helper()
	options := &mcpsdk.ClientOptions{}
	if answer != nil {
		options.ElicitationHandler = func(_ context.Context, r *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
			asked.Add(1)
			for _, part := range []string{"twice wants asked.invalid:443", "granted.invalid"} {
				if !strings.Contains(r.Params.Message, part) {
					t.Errorf("%s: no %q in %q", version, part, r.Params.Message)
				}
			}
			return answer, nil
		}
	}
	return d.callOverMCP(t, version, options, "twice")
}

// callOverMCP is what the network of a call comes to that a client makes.
func (d *served) callOverMCP(t *testing.T, version string, options *mcpsdk.ClientOptions, tool string) *api.Network {
	t.Helper()
	wires := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket)
	}}
	defer wires.CloseIdleConnections()
	session, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test"}, options).Connect(t.Context(),
		&mcpsdk.StreamableClientTransport{Endpoint: "http://localhost/mcp", HTTPClient: &http.Client{Transport: wires}, MaxRetries: -1}, &mcpsdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	r, err := session.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: tool})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r.Meta["dev.toolhost/execution"])
	if err != nil {
		t.Fatal(err)
	}
	var own struct{ Network *api.Network }
	if err := json.Unmarshal(raw, &own); err != nil || own.Network == nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return own.Network
}

// A client's question, too, stays open where the tool has given up, for the rest of its
// call, which is a turn: a yes counts for the next connection.
func TestANameOverMCPTooLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "left")
	d := serve(t, fmt.Sprintf(`
tools:
  patient:
    command: [sh, -c, "curl -sS -m 1 https://asked.invalid/a; curl -sSv -m 30 https://asked.invalid/b 2> %s"]
    write: [%q]
    network: {grants: [granted.invalid], ask: true}
`, left, dir))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		_ = os.Remove(left)
		var asked atomic.Int64
		n := d.callOverMCP(t, version, &mcpsdk.ClientOptions{ElicitationHandler: func(context.Context, *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
			asked.Add(1)
			wait.Until(t, "the tool has given up, and connects again", func() bool {
				said, _ := os.ReadFile(left)
				return bytes.Contains(said, []byte("onnected to")) || bytes.Contains(said, []byte("onnection to"))
			})
			return &mcpsdk.ElicitResult{Action: "accept"}, nil
		}}, "patient")
		if wantReached(t, version, n, 1, "the tool gave up before"); asked.Load() != 1 {
			t.Errorf("%s: asked %d times", version, asked.Load())
		}
	}
}

// A yes that the relay takes while the connection has ended already, which it has not
// noticed, is not spent on that: the next one has it, and nobody is asked again.
func TestAYesForAConnectionThatHasEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	d := serve(t, fmt.Sprintf(`
tools:
  hasty:
    command:
      - sh
      - -c
      - |
        curl -sS https://asked.invalid/a & until [ -e %[1]s/go ]; do sleep 0.02; done
        kill $!; wait; touch %[1]s/left
        curl -sS -m 30 https://asked.invalid/b
    write: [%[1]q]
    network: {grants: [granted.invalid], ask: true}
`, dir))
	turn, err := d.Begin(t.Context(), api.TurnSpec{})
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan *api.Result, 1)
	go func() {
		list, err := d.Run(t.Context(), turn.TurnID, []api.Call{{ID: "a", Tool: "hasty"}})
		if err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
			list = []*api.Result{{}}
		}
		results <- list[0]
	}()
	var open []api.Interaction
	wait.Until(t, "the question is open", func() bool {
		open, err = d.Interactions(t.Context())
		return err == nil && len(open) == 1 || len(results) == 1
	})
	if len(open) != 1 {
		t.Fatalf("not asked: %+v", <-results)
	}
	relay := relayBelow(d.pid)
	if err := syscall.Kill(relay, syscall.SIGSTOP); err != nil || relay == 0 {
		t.Fatalf("process %d: %v", relay, err)
	}
	defer func() { _ = syscall.Kill(relay, syscall.SIGCONT) }()
	wait.Until(t, "the relay has stopped", func() bool { return stopped(relay) })
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the tool has given up", func() bool {
		_, err := os.Stat(filepath.Join(dir, "left"))
		return err == nil
	})
	if err := d.Answer(t.Context(), open[0].ID, api.Answer{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(relay, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case r := <-results:
			wantReached(t, "after a yes", r.Network, 1, "the tool gave up before")
			return
		case <-time.After(5 * time.Millisecond):
		}
		if open, err := d.Interactions(t.Context()); err != nil || len(open) > 0 {
			t.Fatalf("it is asked again: %+v, %v", open, err)
		}
	}
}

// relayBelow is the network relay of a daemon; 0 for none.
func relayBelow(pid int) int {
	for _, child := range processes.Children(pid) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); string(name) == "toolhost-relay\x00" {
			return child
		}
		if relay := relayBelow(child); relay != 0 {
			return relay
		}
	}
	return 0
}

// stopped says whether all threads of a process have.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is good
	return len(threads) > 0 && !slices.ContainsFunc(threads, func(path string) bool {
		line, _ := os.ReadFile(path)
		return !bytes.Contains(line, []byte(") T "))
	})
}
