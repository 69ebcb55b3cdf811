package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// restful plays exclusive tools whose processes take a second each; that of asks wants
// an answer before another one gives the result.
type restful struct {
	t       *testing.T
	running int
	began   []string // the tools of processes
	places  []string // what was done with those beside other turns
	noPlace error    // for who comes again
}

func (p *restful) start(_ context.Context, r supervisor.Request) Running {
	p.began = append(p.began, r.Tool.Name)
	if p.running++; p.running > 1 {
		p.t.Error("calls run beside an exclusive one")
	}
	result := supervisor.Verdict{Status: api.StatusOK}.Result()
	if r.Tool.Name == "asks" && !strings.Contains(string(r.Client), "inputResponses") {
		result.Meta = json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":` + nameForm + `}`)
	}
	return takes{p, over{result}}
}

type takes struct {
	p *restful
	over
}

func (c takes) Result() *api.Result {
	time.Sleep(time.Second)
	c.p.running--
	return c.over.Result()
}

func (p *restful) begin() *Turn {
	p.t.Helper()
	m := New(Config{Start: p.start, Tool: func(name string) (Tool, bool) {
		return Tool{Name: name, Exclusive: true, Request: supervisor.Request{Tool: supervisor.Tool{Name: name}}}, true
	}})
	turn, err := m.Begin(Spec{})
	if err != nil {
		p.t.Fatal(err)
	}
	return turn
}

// placed is a call with a place beside other turns.
func (p *restful) placed(id, tool string) Call {
	return Call{
		ID: id, Tool: tool, Client: json.RawMessage(`{}`),
		Place: func(context.Context) error {
			if p.places = append(p.places, "place "+id); slices.Contains(p.places, "leave "+id) {
				return p.noPlace
			}
			return nil
		},
		Leave: func() { p.places = append(p.places, "leave "+id) },
	}
}

// While a server waits for an answer without a process, calls behind its exclusive one
// run. The call then waits in line again, and nothing runs beside it.
func TestACallRestsBetweenItsProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &restful{t: t}
		turn := p.begin()
		defer turn.End()
		time.AfterFunc(1500*time.Millisecond, func() {
			answer(t, turn, "a", api.Answer{Approve: true, Value: json.RawMessage(`{"name":"Ada"}`)})
			synctest.Wait()
			if info, _ := turn.Info(); info.CurrentTools[0].State != "queued" {
				t.Errorf("the call that was answered is %+v", info.CurrentTools[0])
			}
		})
		results := run(t, turn, p.placed("a", "asks"), p.placed("b", "work"), p.placed("c", "work"))
		want(t, results, "ok", "ok", "ok")
		if got := strings.Join(p.began, " "); got != "asks work asks work" {
			t.Errorf("processes of %s", got)
		}
		if got := strings.Join(p.places, ", "); got != "place a, leave a, place b, place a, place c" {
			t.Errorf("places: %s", got)
		}
		if r := results[0]; r.Timing.QueueMs != 500 || len(r.Rounds) != 1 {
			t.Errorf("it has waited in line for %d ms, %d rounds", r.Timing.QueueMs, len(r.Rounds))
		}
		if r := results[0]; r.Timing.HumanWaitMs != 500 || r.Timing.ElapsedMs != 500 { // its processes tell no times
			t.Errorf("people were waited for %d ms of %d", r.Timing.HumanWaitMs, r.Timing.ElapsedMs)
		}
	})
}

// A call that nobody answers keeps none waiting, and can be aborted.
func TestACallThatRestsIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &restful{t: t}
		turn := p.begin()
		defer turn.End()
		time.AfterFunc(10*time.Second, func() {
			if info, _ := turn.Info(); len(info.CurrentTools) != 1 {
				t.Errorf("under way: %+v", info.CurrentTools)
			}
			turn.AbortCall("a")
		})
		results := run(t, turn, p.placed("a", "asks"), p.placed("b", "work"))
		want(t, results, "cancelled/user", "ok")
		if !strings.Contains(results[0].Message, "between two processes") {
			t.Error(results[0].Message)
		}
	})
}

// A call that gets no place again has begun, and says so.
func TestNoPlaceAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &restful{t: t, noPlace: errors.New("the line is full")}
		turn := p.begin()
		defer turn.End()
		time.AfterFunc(2*time.Second, func() { answer(t, turn, "a", api.Answer{Approve: true, Value: json.RawMessage(`{"name":"Ada"}`)}) })
		r := run(t, turn, p.placed("a", "asks"))[0]
		want(t, []*api.Result{r}, "overloaded/session")
		if !strings.Contains(r.Message, "the line is full") || r.Retry.SideEffects != "possible" || len(r.Rounds) != 1 {
			t.Errorf("%d rounds, side effects %s: %s", len(r.Rounds), r.Retry.SideEffects, r.Message)
		}
	})
}
