package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// playTurns runs whole turns, until it is killed, and prints each event that a subscriber is shown, at once.
func playTurns(dir, name string) {
	j, err := Open(dir, Options{Ahead: true})
	if err != nil {
		panic(err)
	}
	m := turn.New(turn.Config{Start: startFake, Journal: Turns{j}, Interactor: coin{}, Tool: func(tool string) (turn.Tool, bool) {
		return turn.Tool{Name: tool, Mode: turn.Mode(tool), Exclusive: rand.IntN(4) == 0}, tool != "unknown"
	}})
	fmt.Println("open")
	for n := range 2 {
		go func() {
			for round := 0; ; round++ {
				playTurn(m, fmt.Sprintf("%s-%d-%d", name, n, round))
			}
		}()
	}
	wait.Forever()
}

func playTurn(m *turn.Manager, id string) {
	t, err := m.Begin(turn.Spec{ID: id, Headless: rand.IntN(4) == 0, Budget: budget.TurnSpec{MaxCalls: 8}})
	if err != nil {
		panic(err)
	}
	var shown sync.WaitGroup
	for range 2 {
		shown.Go(func() {
			for r := range t.Events(context.Background(), 0) {
				_, _ = os.Stdout.Write(append(slices.Clone(r.JSON), '\n')) // one write, so that lines stay whole
			}
		})
	}
	for b := range 1 + rand.IntN(3) {
		var calls []turn.Call
		for c := range rand.IntN(5) {
			tool := []string{"allow", "allow", "ask", "deny", "unknown"}[rand.IntN(5)]
			calls = append(calls, turn.Call{ID: fmt.Sprint(b, ".", c), Tool: tool, Arguments: fmt.Appendf(nil, `{"n":%d}`, c)})
		}
		if rand.IntN(6) == 0 {
			time.AfterFunc(rand.N(3*time.Millisecond), func() { t.Abort(api.ReasonUser) })
		}
		if _, err := t.Run(context.Background(), calls); err != nil {
			panic(err)
		}
	}
	t.End()
	shown.Wait()
}

// coin answers by chance, or not at all.
type coin struct{}

func (coin) Ask(ctx context.Context, _ api.Interaction) (api.Answer, error) {
	select {
	case <-time.After(rand.N(2 * time.Millisecond)):
	case <-ctx.Done():
	}
	return api.Answer{Approve: rand.IntN(2) == 0, By: "coin"}, nil
}

// fakeCall is a call that sends something, may ask, and ends.
type fakeCall struct {
	done   chan struct{}
	result *api.Result
	abort  func()
}

func (c *fakeCall) Abort(api.Reason) { c.abort() }

func (c *fakeCall) Result() *api.Result {
	<-c.done
	return c.result
}

func startFake(ctx context.Context, r supervisor.Request) turn.Running {
	ctx, cancel := context.WithCancel(ctx)
	c := &fakeCall{done: make(chan struct{}), abort: cancel}
	r.Events <- api.Event{Kind: api.EventStarted, TimeoutMs: 30_000}
	go func() {
		defer close(c.done)
		defer cancel()
		v := supervisor.Verdict{Status: api.StatusOK}
		for n := range rand.IntN(4) {
			select {
			case r.Events <- api.Event{Kind: api.EventOutput, Stream: "content", Content: &api.Content{Type: "text", Text: fmt.Sprint("part ", n)}}:
			default:
			}
			select {
			case <-time.After(rand.N(time.Millisecond)):
			case <-ctx.Done():
				v = supervisor.Verdict{Status: api.StatusCancelled, Reason: "user", Message: "[CANCELLED] x"}
			}
		}
		if rand.IntN(3) == 0 {
			r.Ask(ctx, supervisor.Question{Prompt: "Really?"})
		}
		c.result = v.Result()
	}()
	return c
}

// TestKillTurns kills a host at random moments of whole turns. What any subscriber has been shown is on record, byte for
// byte; and after Recover every turn is one that has ended as turns do.
func TestKillTurns(t *testing.T) { // not beside tests that lock: until its child is executed it has their locks, too
	kills := 50
	if os.Getenv("TOOLHOST_SOAK_RUNS") != "" {
		kills = 200
	}
	if testing.Short() {
		kills = 3
	}
	kills = killsOf(t, kills)
	dir := t.TempDir()
	shown := 0
	for n := range kills {
		said := killHost(t, dir, fmt.Sprint("k", n))
		shown += len(said)
		expectShown(t, dir, said)
		recoverTwice(t, dir, fmt.Sprint("k", n))
		expectShown(t, dir, said)
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
	}
	t.Logf("%d kills, %d events shown", kills, shown)
}

// killHost returns the events that were shown until the host died.
func killHost(t *testing.T, dir, name string) (said [][]byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir, name)
	cmd.Env = childEnv("turns")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if first, _ := lines.ReadString('\n'); first != "open\n" {
		t.Errorf("the host began with %q", first)
	}
	kill := rand.IntN(300)
	for read := 0; ; read++ {
		if read == kill {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		said = append(said, bytes.TrimSuffix(line, []byte("\n")))
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 { // -1: killed
		t.Errorf("the host ended by itself: %v", err)
	}
	return said
}

func expectShown(t *testing.T, dir string, said [][]byte) {
	t.Helper()
	r := mustRead(t, dir)
	defer mustClose(t, r)
	kept := map[string][]Event{}
	for _, line := range said {
		var e api.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if kept[e.TurnID] == nil {
			kept[e.TurnID] = collect(t, r, e.TurnID, 0)
		}
		events := kept[e.TurnID]
		if int(e.Seq) > len(events) || !bytes.Equal(events[e.Seq-1].JSON, line) {
			t.Errorf("shown, and not on record as event %d of %d: %s", e.Seq, len(events), line)
		}
	}
}

// recoverTwice closes what the host left open, and changes nothing the second time.
func recoverTwice(t *testing.T, dir, name string) {
	t.Helper()
	j := mustOpen(t, dir, Options{})
	defer mustClose(t, j)
	for range 2 {
		if err := j.Recover(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	r := mustRead(t, dir)
	defer mustClose(t, r)
	turns, err := r.Turns(api.Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range turns {
		if len(one.TurnID) > len(name) && one.TurnID[:len(name)+1] == name+"-" {
			expectGrammar(t, r, one.TurnID)
		}
	}
}

// expectGrammar holds the events of a turn that is over against what all turns have in common.
func expectGrammar(t *testing.T, r *Reader, id string) {
	t.Helper()
	events := collect(t, r, id, 0)
	calls, asked := map[string]string{}, map[string]bool{}
	for i, stored := range events {
		var e api.Event
		if err := json.Unmarshal(stored.JSON, &e); err != nil {
			t.Fatal(err)
		}
		if (e.Kind == api.EventTurnStart) != (i == 0) || (e.Kind == api.EventTurnEnd) != (i == len(events)-1) || e.Seq != int64(i+1) {
			t.Errorf("turn %s: event %d of %d is %s", id, i+1, len(events), stored.JSON)
		}
		if calls[e.CallID] == "over" && e.CallID != "" {
			t.Errorf("turn %s: after the end of call %s comes %s", id, e.CallID, stored.JSON)
		}
		switch e.Kind {
		case api.EventQueued:
			calls[e.CallID] = "open"
		case api.EventFinished, api.EventFailed:
			calls[e.CallID] = "over"
			if _, err := r.Result(id, e.CallID); err != nil {
				t.Errorf("turn %s: call %s: %v", id, e.CallID, err)
			}
		case api.EventInteractionPending:
			asked[e.InteractionID] = *e.Pending
		case api.EventInteractionRequest, api.EventInteractionResponse:
			if !asked[e.InteractionID] {
				t.Errorf("turn %s: not pending at %s", id, stored.JSON)
			}
		}
	}
	for call, state := range calls {
		if state != "over" {
			t.Errorf("turn %s: call %s has no end", id, call)
		}
	}
	for interaction, pending := range asked {
		if pending {
			t.Errorf("turn %s: interaction %s has no end", id, interaction)
		}
	}
}
