package supervisor

import (
	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// Verdict is the outcome of a call that was not run.
type Verdict struct {
	CallID, Tool string
	// Status is StatusDenied, StatusCancelled or the like; Reason and Decider
	// as in Result.
	Status  api.Status
	Reason  api.Reason
	Decider string
	// Message is the whole paragraph for the model, with its prefix.
	Message string
}

// Result returns the result of the call, which ran nothing and changed nothing.
func (v Verdict) Result() *api.Result {
	r := &api.Result{
		SchemaVersion: api.SchemaVersion, CallID: v.CallID, Tool: v.Tool, Instance: api.InstanceFresh,
		Status: v.Status, Code: outcome.CodeName(v.Status), Reason: v.Reason, Decider: v.Decider, Message: v.Message,
		Warnings: []string{}, Files: []api.File{}, Content: []api.Content{}, Kill: api.Kill{Stage: "none", Signals: []string{}},
	}
	r.Sandbox = prepare.EmptyReceipt()
	r.Retry = api.Retry{Retryable: outcome.Retryable(r), SideEffects: "none", Hint: outcome.HintOf(r)}
	return r
}
