package main

import (
	"context"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// over is a call that has a result already.
type over struct{ result *api.Result }

func (over) Abort(api.Reason)      {}
func (o over) Result() *api.Result { return o.result }

// A call that the host had no room for is made again, and the model is told nothing
// but the result; a call that may have had effects is not.
func TestCallsAreMadeAgain(t *testing.T) {
	starts := map[string]int{}
	m := turn.New(turn.Config{
		Parallel: 1,
		Start: func(_ context.Context, r supervisor.Request) turn.Running {
			starts[r.Name]++
			v := supervisor.Verdict{Status: api.StatusOverloaded, Reason: api.ReasonAdmission}
			if r.Name == "failed" {
				v = supervisor.Verdict{Status: api.StatusTimeout}
			} else if starts[r.Name] == 3 {
				v.Status = api.StatusOK
			}
			result := v.Result()
			result.Retry.Retryable = v.Status == api.StatusOverloaded
			return over{result}
		},
		Tool: func(name string) (turn.Tool, bool) {
			return turn.Tool{Name: name, Request: supervisor.Request{Name: name}}, true
		},
	})
	current, err := m.Begin(turn.Spec{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	defer current.End()
	results, err := again(current)(t.Context(), []turn.Call{{ID: "1", Tool: "failed"}, {ID: "2", Tool: "busy"}})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Status != api.StatusTimeout || !results[1].OK() || results[1].CallID != "2" || len(results[1].Warnings) > 0 {
		t.Errorf("%+v, %+v", results[0], results[1])
	}
	if starts["failed"] != 1 || starts["busy"] != 3 {
		t.Errorf("started %v", starts)
	}
}
