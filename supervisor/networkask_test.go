package supervisor_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/supervisor"
)

func TestPeopleAreAskedAboutNames(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	host := newHost(t, supervisor.Config{})
	for name, test := range map[string]struct {
		answer supervisor.Answer
		asked  int
		want   string
	}{
		"once":     {supervisor.Answer{Value: json.RawMessage("true")}, 2, "GET"},
		"turn":     {supervisor.Answer{Value: json.RawMessage("true"), Always: true}, 1, "GET"},
		"denied":   {supervisor.Answer{Value: json.RawMessage("false")}, 1, "error"},
		"headless": {supervisor.Answer{Denied: "headless"}, 1, "error"},
	} {
		r := reaching(t, l, lab0, "get https://b.test/1", "get http://b.test/2")
		if test.asked == 1 { // of one port
			r = reaching(t, l, lab0, "get https://b.test/1", "tls b.test:443 b.test")
		}
		r.Sandbox.AskNetwork = true
		asked := make(chan string, 8)
		r.Ask = func(_ context.Context, q supervisor.Question) supervisor.Answer {
			asked <- q.Reach
			return test.answer
		}
		result := call(t, host, r)
		if got := said(result)[0]; !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if len(asked) != test.asked || <-asked != "b.test:443" {
			t.Errorf("%s: asked %d times", name, len(asked)+1)
		}
		if test.want == "error" {
			wantRefused(t, result, "b.test", 443, "not granted")
		}
	}
}

// A tool that gives up leaves its question open, and is told so; an approval that
// comes then counts for its next connection.
func TestAToolThatGivesUp(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	r := reaching(t, l, with("203.0.113.10:2223"), "leave b.test:443 203.0.113.10:2223", "get https://b.test/2")
	r.Sandbox.AskNetwork = true
	r.Ask = func(context.Context, supervisor.Question) supervisor.Answer {
		eventually(t, "the tool has given up", func() bool { return l.Sunk() > 0 })
		return supervisor.Answer{Value: json.RawMessage("true")}
	}
	result := call(t, newHost(t, supervisor.Config{}), r)
	if got := said(result); !strings.HasPrefix(got[0], "left") || !strings.HasPrefix(got[1], "GET b.test /2") {
		t.Errorf("%q", got)
	}
	wantRefused(t, result, "b.test", 443, "the question stays open")
}

// A call whose tool has given up runs on against its clock.
func TestNoClockStandsStillForNobody(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	r := reaching(t, l, with("203.0.113.10:2223"), "leave b.test:443 203.0.113.10:2223", "hang")
	r.Sandbox.AskNetwork = true
	r.Timeouts, r.Grace = within(2*time.Second), -1
	r.Ask = func(ctx context.Context, _ supervisor.Question) supervisor.Answer {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("the call waits for an answer that is for nobody")
		}
		return supervisor.Answer{Denied: api.OutcomeCancelled}
	}
	wantStatus(t, call(t, newHost(t, supervisor.Config{}), r), api.StatusTimeout)
}

// Without an asker a name that is not granted is refused at its connection.
func TestNobodyIsAskedAboutNames(t *testing.T) {
	l := lab.Run(t)
	if l == nil {
		return
	}
	r := reaching(t, l, lab0, "get https://b.test/1")
	r.Sandbox.AskNetwork = true
	result := call(t, newHost(t, supervisor.Config{}), r)
	wantRefused(t, result, "b.test", 443, "nobody is there")
}
