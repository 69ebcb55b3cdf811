package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// approving is a world whose approvals are at hand.
func approving(o ApprovalOptions) (*world, *Approvals) {
	w := newWorld()
	a := NewApprovals(o)
	w.Manager = New(Config{Start: w.fakes.start, Journal: w.journal, Approvals: a, Tool: func(name string) (Tool, bool) {
		tool, ok := testTools[name]
		return tool, ok
	}})
	return w, a
}

// What one yes is for: the same turn, the same session of the same owner, or all turns
// of the owner; never another owner's.
func TestWhatAnApprovalIsFor(t *testing.T) {
	for scope, free := range map[string][]bool{
		"":              {true, false, false, false, false},
		api.ForTurn:     {true, false, false, false, false},
		api.ForSession:  {true, true, false, false, false},
		api.ForIdentity: {true, true, true, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := approving(ApprovalOptions{})
			first := w.begin(t, Spec{Owner: "token a", SessionID: "s"})
			defer first.End()
			go answer(t, first, "yes", api.Answer{Approve: true, Always: true, For: scope, By: "token boss"})
			want(t, run(t, first, callOf("yes", "ask", 1)), "ok")
			for i, spec := range []Spec{
				{}, {Owner: "token a", SessionID: "s"}, {Owner: "token a", SessionID: "other"}, {Owner: "token b", SessionID: "s"}, {SessionID: "s"},
			} {
				turn, id := first, fmt.Sprint("again", i)
				if i > 0 {
					turn = w.begin(t, spec)
				}
				expected := "ok"
				if !free[i] {
					expected = "denied/user"
					go answer(t, turn, id, api.Answer{})
				}
				want(t, run(t, turn, callOf(id, "ask", 2)), expected)
				if i > 0 {
					turn.End()
				}
			}
		})
	}
}

// With the same arguments alone: however they are written, and no others.
func TestAnApprovalOfArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := approving(ApprovalOptions{})
		turn := w.begin(t, Spec{Owner: "token a"})
		defer turn.End()
		call := func(id, arguments string) Call { return Call{ID: id, Tool: "ask", Arguments: []byte(arguments)} }
		go answer(t, turn, "a", api.Answer{Approve: true, Always: true, For: api.ForIdentity, SameArguments: true})
		want(t, run(t, turn, call("a", `{"ms":1,"say":"x"}`)), "ok")
		want(t, run(t, turn, call("b", `{ "say":"x", "ms":1 }`)), "ok")
		go answer(t, turn, "c", api.Answer{})
		want(t, run(t, turn, call("c", `{"ms":1,"say":"y"}`)), "denied/user")
		if list := a.List(); len(list) != 1 || string(list[0].Arguments) != `{"ms":1,"say":"x"}` || list[0].Uses != 1 || list[0].LastUse.IsZero() {
			t.Errorf("%+v", list)
		}
	})
}

// How often one was used outlives the process, and without new ones nothing is written.
func TestUsesAreKept(t *testing.T) {
	var saved []KeptApproval
	saves, full := 0, errors.New("full")
	var fails error
	o := ApprovalOptions{
		Kept: []KeptApproval{{Approval: api.Approval{ID: "one", For: api.ForIdentity, Uses: 3}}},
		Save: func(list []KeptApproval) error {
			saves++
			if fails == nil {
				saved = slices.Clone(list)
			}
			return fails
		},
	}
	a := NewApprovals(o)
	flush := func(want int) {
		t.Helper()
		if err := a.Flush(); err != nil || saves != want {
			t.Errorf("%d saves, want %d: %v", saves, want, err)
		}
	}
	flush(0)
	a.hold(approvable{})
	fails = full
	flush(1) // and nothing is revoked for that
	fails = nil
	flush(2)
	flush(2)
	if o.Kept = saved; len(saved) != 1 || NewApprovals(o).List()[0].Uses != 4 {
		t.Errorf("kept: %+v", saved)
	}
}

// An approval ends with what it is for, with its time, or when somebody takes it back.
func TestApprovalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []KeptApproval
		holder := true
		w, a := approving(ApprovalOptions{
			Save:   func(list []KeptApproval) error { saved = slices.Clone(list); return nil },
			Stands: func(api.Approval) (bool, error) { return holder, nil },
		})
		give := func(scope string) *Turn {
			turn := w.begin(t, Spec{Owner: "token a", SessionID: "s"})
			go answer(t, turn, "yes", api.Answer{Approve: true, Always: true, For: scope, By: "token boss"})
			want(t, run(t, turn, callOf("yes", "ask", 1)), "ok")
			return turn
		}
		left := func(what string, n int) {
			t.Helper()
			if list := a.List(); len(list) != n {
				t.Errorf("%s: %+v", what, list)
			}
		}
		turn := give(api.ForTurn)
		left("while the turn is active", 1)
		turn.End()
		left("after the turn", 0)

		give(api.ForSession).End()
		a.EndSession("token b", "s")
		left("another's session has ended", 1)
		a.EndSession("token a", "s")
		left("the session has ended", 0)
		give(api.ForSession).End()
		time.Sleep(sessionApproval)
		left("a session's time is over", 0)

		give(api.ForIdentity).End()
		if len(saved) != 1 || saved[0].By != "token boss" || saved[0].Key == "" {
			t.Errorf("saved %+v", saved)
		}
		nobody := func(string) bool { return false }
		if _, err := a.Revoke(a.List()[0].ID, nobody); !errors.Is(err, ErrNoApproval) {
			t.Errorf("revoked by nobody: %v", err)
		}
		if one, err := a.Revoke(a.List()[0].ID, func(owner string) bool { return owner == "token a" }); err != nil || one.Tool != "ask" || len(saved) != 0 {
			t.Errorf("revoked %+v, %v, saved %+v", one, err, saved)
		}
		left("revoked", 0)

		give(api.ForIdentity).End()
		kept := slices.Clone(saved)
		next := NewApprovals(ApprovalOptions{Kept: kept, Stands: func(api.Approval) (bool, error) { return holder, nil }})
		if list := next.List(); len(list) != 1 || list[0].ID != kept[0].ID {
			t.Errorf("the next process has %+v", list)
		}
		holder = false
		left("the holder of the name is another", 0)
		if list := next.List(); len(list) != 0 {
			t.Errorf("the next process has %+v of another holder", list)
		}
		holder = true
		give(api.ForIdentity).End()
		time.Sleep(identityApproval)
		left("an identity's time is over", 0)
	})
}

// A revocation that cannot be saved counts at once, is listed as not kept, and is saved as
// soon as it can be; where there is no room for all of the list, nothing is saved rather than too much.
func TestRevokedWhereNothingCanBeSaved(t *testing.T) {
	var saved []KeptApproval
	var room, readOnly bool
	full := errors.New("no space left")
	a := NewApprovals(ApprovalOptions{
		Kept: []KeptApproval{
			{Approval: api.Approval{ID: "one", For: api.ForIdentity, ExpiresAt: time.Now().Add(time.Hour)}},
			{Approval: api.Approval{ID: "other", For: api.ForIdentity, ExpiresAt: time.Now().Add(time.Hour)}},
		},
		Save: func(list []KeptApproval) error {
			if readOnly || !room && len(list) > 0 {
				return full
			}
			saved = slices.Clone(list)
			return nil
		},
	})
	saved = []KeptApproval{{}, {}}
	anybody := func(string) bool { return true }
	state := func(what, listed string, kept int) {
		t.Helper()
		var got []string
		for _, one := range a.List() {
			if one.RevokedAt.IsZero() {
				got = append(got, one.ID)
			} else {
				got = append(got, one.ID+" revoked")
			}
		}
		if strings.Join(got, ", ") != listed || len(saved) != kept {
			t.Errorf("%s: listed %q, saved %+v", what, got, saved)
		}
	}
	readOnly = true
	for range 2 {
		if _, err := a.Revoke("one", anybody); !errors.Is(err, full) {
			t.Errorf("revoked where nothing can be written: %v", err)
		}
		state("nothing can be written", "one revoked, other", 2)
	}
	if a.hold(approvable{}) != true || a.List()[0].Uses != 0 || a.List()[1].Uses != 1 {
		t.Errorf("a call goes by %+v", a.List())
	}
	readOnly = false
	if err := a.Flush(); err != nil {
		t.Error(err)
	}
	state("the file can be removed", "other", 0)
	room = true
	if err := a.Flush(); err != nil {
		t.Error(err)
	}
	state("there is room again", "other", 1)
	room = false
	if _, err := a.Revoke("other", anybody); err != nil {
		t.Error(err)
	}
	state("the last one is revoked without room", "", 0)
}

// What cannot be given is refused, and the question goes on to wait.
func TestApprovalsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		w, _ := approving(ApprovalOptions{Save: func([]KeptApproval) error { return full }})
		turn := w.begin(t, Spec{})
		defer turn.End()
		owned := w.begin(t, Spec{Owner: "token a"})
		defer owned.End()
		done := make(chan struct{}, 2)
		for _, one := range []*Turn{turn, owned} {
			go func() {
				_, _ = one.Run(t.Context(), []Call{callOf("a", "ask", 1)})
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		refused := func(turn *Turn, a api.Answer, why string) {
			t.Helper()
			info, _ := turn.Info()
			if err := turn.Answer(info.PendingInteractions[0].ID, a); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%+v: %v", a, err)
			}
		}
		refused(turn, api.Answer{Approve: true, Always: true, For: api.ForSession}, "must be turn")
		refused(turn, api.Answer{Approve: true, Always: true, For: api.ForIdentity}, "must be turn")
		refused(turn, api.Answer{Approve: true, Always: true, For: "ever"}, `for is "ever"`)
		refused(turn, api.Answer{Approve: true, For: api.ForTurn}, "go with always")
		refused(turn, api.Answer{Approve: true, SameArguments: true}, "go with always")
		refused(turn, api.Answer{Always: true, For: api.ForTurn}, "only a yes")
		refused(turn, api.Answer{Always: true}, "only a yes")
		refused(owned, api.Answer{Approve: true, Always: true, For: api.ForIdentity}, "no space left")
		info, _ := turn.Info()
		if got := info.PendingInteractions[0].Always; !slices.Equal(got, []string{api.ForTurn}) {
			t.Errorf("offered for %q", got)
		}
		answer(t, turn, "a", api.Answer{Approve: true})
		answer(t, owned, "a", api.Answer{Approve: true})
		<-done
		<-done
	})
}

// One owner cannot fill the room of others, nor can all of them go on without end.
func TestApprovalsAreBounded(t *testing.T) {
	a := NewApprovals(ApprovalOptions{})
	give := func(owner, tool string) error {
		_, err := a.give(approvable{owner: owner, tool: tool}, api.Answer{For: api.ForIdentity})
		return err
	}
	for i := range ownApprovals {
		if err := give("token a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := give("token a", "more"); err == nil || !strings.Contains(err.Error(), "revoke some") {
		t.Errorf("more than an owner may have: %v", err)
	}
	if err := give("token b", "x"); err != nil {
		t.Error(err)
	}
}

// An approval is for what the human was shown: a tool that touches or runs something
// else is asked about again.
func TestAnApprovalIsOfWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		tool := testTools["ask"]
		program, started := "one", ""
		w.Manager = New(Config{
			Journal: w.journal, Tool: func(string) (Tool, bool) { return tool, true }, Program: func(supervisor.Request) (string, error) { return program, nil },
			Start: func(ctx context.Context, r supervisor.Request) Running {
				started = r.SHA256
				return w.fakes.start(ctx, r)
			},
		})
		turn := w.begin(t, Spec{})
		defer turn.End()
		plain := tool.Request
		again := func(id string, change func(*supervisor.Request), expected string) {
			t.Helper()
			tool.Request = plain
			change(&tool.Request)
			if expected != "ok" {
				go answer(t, turn, id, api.Answer{})
			}
			want(t, run(t, turn, callOf(id, "ask", 1+len(id))), expected)
		}
		go answer(t, turn, "a", api.Answer{Approve: true, Always: true})
		again("a", func(*supervisor.Request) {}, "ok")
		again("bb", func(*supervisor.Request) {}, "ok")
		again("ccc", func(r *supervisor.Request) { r.Sandbox = &supervisor.Policy{Write: []string{"/srv"}} }, "denied/user")
		again("dddd", func(r *supervisor.Request) { r.Command = &supervisor.Command{Argv: []string{"rm"}} }, "denied/user")
		again("eeeee", func(r *supervisor.Request) { r.Tool.Path = "/bin/other" }, "denied/user")
		if started != "one" {
			t.Errorf("what runs has the hash %q, not that of what was approved", started)
		}
		program = "two"
		again("ffffff", func(*supervisor.Request) {}, "denied/user")
	})
}

// So is one of a configured command: it is for its words, and for where they run.
func TestAnApprovalIsOfACommandsWords(t *testing.T) {
	command := func(source string) *supervisor.Command {
		tool, err := supervisor.NewCommandTool(supervisor.CommandSpec{
			Description: &pluginv1.ToolDescription{Name: "ask", InputSchema: []byte(`{"type":"object"}`)}, Source: []byte(source),
			Build: func(json.RawMessage) ([]string, []byte, error) { return nil, nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return &supervisor.Command{Argv: []string{"sh"}, Tool: tool}
	}
	plain := supervisor.Request{
		Command: command(`{"argv":["ls"]}`), Env: []string{"A=1"}, Dir: "/srv", Secrets: []supervisor.Secret{{Variable: "TOKEN", Value: "one"}},
	}
	for name, one := range map[string]struct {
		change func(*supervisor.Request)
		want   string
	}{
		"nothing":         {func(*supervisor.Request) {}, "ok"},
		"a secret's word": {func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "TOKEN", Value: "two"}} }, "ok"},
		"the words":       {func(r *supervisor.Request) { r.Command = command(`{"argv":["rm"]}`) }, "denied/headless"},
		"the variables":   {func(r *supervisor.Request) { r.Env = []string{"A=2"} }, "denied/headless"},
		"the folder":      {func(r *supervisor.Request) { r.Dir = "/" }, "denied/headless"},
		"the secrets":     {func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "one"}} }, "denied/headless"},
		"a secret's file": {func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "TOKEN", File: true}} }, "denied/headless"},
	} {
		for _, same := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				tool := Tool{Name: "ask", Mode: ModeAsk, Request: plain}
				w := newWorld()
				w.config.Tool = func(string) (Tool, bool) { return tool, true }
				call := Call{ID: "a", Tool: "ask", Arguments: []byte(`{"ms":1}`)}
				turn := w.begin(t, Spec{Owner: "token a"})
				defer turn.End()
				go answer(t, turn, "a", api.Answer{Approve: true, Always: true, For: api.ForIdentity, SameArguments: same})
				want(t, run(t, turn, call), "ok")
				one.change(&tool.Request)
				headless := w.begin(t, Spec{Owner: "token a", Headless: true})
				defer headless.End()
				if got := statuses(run(t, headless, call)); got[0] != one.want {
					t.Errorf("%s has changed, same arguments %t: %s", name, same, got[0])
				}
			})
		}
	}
}
