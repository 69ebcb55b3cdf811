package turn

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// describing plays tools of which nothing is known but what their entries say.
type describing struct {
	mu    sync.Mutex
	asked []string
	tools map[string]Tool // without Describe
	takes map[string]time.Duration
	fails map[string]*api.Result
	known map[string]Tool // what holds before
}

func (d *describing) tool(name string) (Tool, bool) {
	tool, ok := d.known[name]
	tool.Name = name
	tool.Describe = func(ctx context.Context) (*Tool, *api.Result) { return d.describe(ctx, name) }
	return tool, ok
}

func (d *describing) describe(ctx context.Context, name string) (*Tool, *api.Result) {
	d.mu.Lock()
	d.asked = append(d.asked, name)
	d.mu.Unlock()
	select {
	case <-time.After(d.takes[name] + 1):
	case <-ctx.Done():
		return nil, supervisor.Verdict{Status: api.StatusCancelled}.Result()
	}
	if failed := d.fails[name]; failed != nil {
		return nil, failed
	}
	if tool, ok := d.tools[name]; ok {
		return &tool, nil
	}
	return nil, nil
}

func (d *describing) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.asked)
	return d.asked
}

func describedWorld(d *describing) *world {
	w := &world{fakes: &fakes{}, journal: &recorder{}}
	w.Manager = New(Config{Start: w.fakes.start, Journal: w.journal, Parallel: 8, Tool: d.tool})
	return w
}

// What is known to be refused costs no Describe: made-up names, denied tools,
// calls beyond the cap or without time, repeated ones, and those that need an
// approval where nobody is.
func TestRefusedWithoutADescribe(t *testing.T) {
	for name, test := range map[string]struct {
		spec Spec
		tool Tool
		call Call
		want string
		runs int // calls before
	}{
		"unknown":  {call: Call{ID: "x", Tool: "nosuch"}, want: "invalid_args/call"},
		"denied":   {tool: Tool{Mode: ModeDeny}, want: "denied/policy"},
		"cap":      {spec: Spec{Budget: budget.TurnSpec{MaxCalls: 1}}, runs: 1, want: "denied/turn_budget"},
		"time":     {spec: Spec{Budget: budget.TurnSpec{Deadline: time.Second}}, want: "denied/turn_budget"},
		"repeated": {call: Call{ID: "x", Tool: "slow", Before: repeatRefuse}, want: "denied/repeat"},
		"headless": {spec: Spec{Headless: true}, tool: Tool{Mode: ModeAsk}, want: "denied/headless"},
		"claimed":  {spec: Spec{Headless: true}, tool: Tool{Destructive: true}, want: "denied/headless"},
		"problem":  {call: Call{ID: "x", Tool: "slow", Problem: "it is none"}, want: "invalid_args/call"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &describing{known: map[string]Tool{"slow": test.tool}, tools: map[string]Tool{"slow": {}}}
				turn := describedWorld(d).begin(t, test.spec)
				defer turn.End()
				for range test.runs {
					run(t, turn, callOf("before", "nosuch", 1))
				}
				if test.call.ID == "" {
					test.call = callOf("x", "slow", 1)
				}
				if got := statuses(run(t, turn, test.call))[0]; got != test.want || len(d.names()) > 0 {
					t.Errorf("%s after describing %q, want %s", got, d.names(), test.want)
				}
			})
		})
	}
}

// Nobody needs to be there for what was approved before, whether the tool is described
// already or not.
func TestApprovedBeforeItIsDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := Tool{Name: "slow", Mode: ModeAsk}
		d := &describing{known: map[string]Tool{"slow": asks}, tools: map[string]Tool{"slow": asks}}
		w := describedWorld(d)
		turn := w.begin(t, Spec{Owner: "token a"})
		defer turn.End()
		go answer(t, turn, "x", api.Answer{Approve: true, Always: true, For: api.ForIdentity})
		want(t, run(t, turn, callOf("x", "slow", 1)), "ok")
		for owner, status := range map[string]string{"token a": "ok", "token b": "denied/headless"} {
			headless := w.begin(t, Spec{Owner: owner, Headless: true})
			want(t, run(t, headless, callOf("x", "slow", 1)), status)
			headless.End()
		}
	})
}

// A tool that hangs while it is described holds up its own calls, and no others.
func TestADescribeHoldsUpItsOwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &describing{known: map[string]Tool{}, tools: map[string]Tool{}, takes: map[string]time.Duration{}, fails: map[string]*api.Result{}}
		var calls []Call
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			d.known[name], d.takes[name] = Tool{}, 10*time.Second
			d.fails[name] = supervisor.Verdict{Status: api.StatusTimeout, Message: "[TIMEOUT] not ready"}.Result()
			calls = append(calls, callOf(name, name, 1))
		}
		d.known["quick"], d.tools["quick"] = Tool{}, Tool{Name: "quick"}
		w := describedWorld(d)
		turn := w.begin(t, Spec{})
		defer turn.End()
		began := time.Now()
		got := statuses(run(t, turn, append(calls, callOf("quick", "quick", 1))...))
		var quick time.Duration
		for _, r := range w.journal.list() {
			if r.Event.CallID == "quick" && r.Event.Kind == api.EventFinished {
				quick = r.Event.Time.Sub(began)
			}
		}
		if slices.Index(got, "ok") != 9 || slices.Contains(got[:9], "ok") || quick == 0 || quick > time.Second || time.Since(began) > 11*time.Second {
			t.Errorf("%q, quick after %s, all after %s", got, quick, time.Since(began))
		}
		if info, _ := turn.Info(); len(info.TimedOutTools) != 9 {
			t.Errorf("timed out: %q", info.TimedOutTools)
		}
	})
}

// Calls keep their order around one whose tool is being described: behind one that
// is exclusive by its entry nothing starts, and behind another nothing that is to
// run alone.
func TestTheOrderHoldsWhileAToolIsDescribed(t *testing.T) {
	alone := Tool{Name: "alone", Exclusive: true, Request: supervisor.Request{Tool: supervisor.Tool{Name: "alone"}}}
	for name, test := range map[string]struct {
		known, is Tool
		want      []string
	}{
		"configured":  {Tool{Exclusive: true}, alone, []string{"slow", "reads", "writes"}},
		"by its word": {Tool{}, alone, []string{"reads", "slow", "writes"}},
		"parallel":    {Tool{}, Tool{Name: "slow"}, []string{"reads", "slow", "writes"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &describing{
					known: map[string]Tool{"slow": test.known, "reads": {}, "writes": {Exclusive: true}},
					tools: map[string]Tool{"slow": test.is, "reads": {Name: "reads"}, "writes": alone},
					takes: map[string]time.Duration{"slow": 5 * time.Second},
				}
				w := describedWorld(d)
				turn := w.begin(t, Spec{})
				defer turn.End()
				run(t, turn, callOf("slow", "slow", 10), callOf("reads", "reads", 20), callOf("writes", "writes", 30))
				if !slices.Equal(w.fakes.started, test.want) || w.fakes.crowded > 0 {
					t.Errorf("started %q, want %q; %d beside an exclusive one", w.fakes.started, test.want, w.fakes.crowded)
				}
			})
		})
	}
}

// What a tool says of itself still counts once it has said it.
func TestAClaimIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &describing{known: map[string]Tool{"wipe": {}, "gone": {}}, tools: map[string]Tool{"wipe": {Name: "wipe", Destructive: true}}}
		turn := describedWorld(d).begin(t, Spec{Headless: true})
		defer turn.End()
		got := statuses(run(t, turn, callOf("1", "wipe", 1), callOf("2", "gone", 1)))
		if !slices.Equal(got, []string{"denied/headless", "invalid_args/call"}) {
			t.Errorf("%q", got)
		}
	})
}

// An abort, of a call or of the turn, ends its Describe.
func TestAnAbortEndsADescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &describing{known: map[string]Tool{"slow": {}, "slower": {}}, takes: map[string]time.Duration{"slow": time.Hour, "slower": time.Hour}}
		turn := describedWorld(d).begin(t, Spec{})
		defer turn.End()
		go func() {
			synctest.Wait()
			if info, _ := turn.Info(); len(info.CurrentTools) != 2 || info.CurrentTools[0].State != "queued" {
				t.Errorf("meanwhile: %+v", info.CurrentTools)
			}
			turn.AbortCall("1")
			synctest.Wait()
			turn.Abort(api.ReasonUser)
		}()
		began := time.Now()
		got := statuses(run(t, turn, callOf("1", "slow", 1), callOf("2", "slower", 1)))
		if !slices.Equal(got, []string{"cancelled/user", "cancelled/user"}) || time.Since(began) > time.Minute {
			t.Errorf("%q after %s", got, time.Since(began))
		}
	})
}
