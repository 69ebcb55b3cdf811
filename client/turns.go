package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolhost/toolhost/api"
)

// Health reports whether the daemon runs.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, http.MethodGet, "/api/health", nil)
}

// Ready returns nil if calls can be made, else an error that says why not.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/api/ready", nil, nil)
}

// Tools returns the catalogue, and the reasons why configured tools are missing from it.
func (c *Client) Tools(ctx context.Context) (api.Tools, error) {
	return ask[api.Tools](ctx, c, http.MethodGet, "/api/tools", nil)
}

// Workers returns the workers of the daemon's fleet. If the daemon has no fleet, IsNotFound
// is true for the error.
func (c *Client) Workers(ctx context.Context) (api.Workers, error) {
	return ask[api.Workers](ctx, c, http.MethodGet, "/api/workers", nil)
}

// DrainWorker tells a worker of the daemon's fleet to take no more calls, and to end when it
// has none left. It does not wait.
func (c *Client) DrainWorker(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/workers/", name, "/drain"), nil, nil)
}

// RemoveWorker removes a worker from the daemon's fleet at once: its calls are ended, and
// its key is no longer accepted.
func (c *Client) RemoveWorker(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/workers/", name, "/remove"), nil, nil)
}

// Tool returns the catalogue of one name: at most one tool, or the reason why it is
// missing. The daemon does not describe other tools for it.
func (c *Client) Tool(ctx context.Context, name string) (api.Tools, error) {
	return ask[api.Tools](ctx, c, http.MethodGet, "/api/tools?"+url.Values{"name": {name}}.Encode(), nil)
}

// Begin begins a turn, to be ended by End. The daemon ends a turn itself after a
// while without requests about it.
func (c *Client) Begin(ctx context.Context, spec api.TurnSpec) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodPost, "/api/turns", spec)
}

// Run runs a batch and returns a result for each call, in call order. If ctx ends first,
// the daemon aborts the turn. The response has no bytes before all calls have ended; behind
// a proxy with a shorter timeout, use RunEvents.
func (c *Client) Run(ctx context.Context, turnID string, calls []api.Call) ([]*api.Result, error) {
	var results api.Results
	err := c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/calls"), api.Batch{Calls: some(calls)}, &results)
	return normalize(results.Results), err
}

// RunTurn runs a batch in a new turn. Once the turn is over it returns a result for each
// call, in call order. If ctx ends first, the daemon aborts the turn.
func (c *Client) RunTurn(ctx context.Context, spec api.TurnSpec, calls []api.Call) ([]*api.Result, error) {
	var results api.Results
	err := c.call(ctx, http.MethodPost, callsPath, turnOf(spec, calls), &results)
	return normalize(results.Results), err
}

const callsPath = "/api/calls"

func turnOf(spec api.TurnSpec, calls []api.Call) api.BatchTurn {
	return api.BatchTurn{TurnSpec: spec, Batch: api.Batch{Calls: some(calls)}}
}

// RunAgain is like Run, but repeats the failed calls that again selects; budget.Retry's
// Again selects those with a retryable result. Repeated calls run in the same turn. They
// count towards its limit of calls, but not for its repeat guard.
func (c *Client) RunAgain(ctx context.Context, turnID string, calls []api.Call, again api.Again) ([]*api.Result, error) {
	return api.RunAgain(ctx, calls, again, func(ctx context.Context, attempt int, calls []api.Call) ([]*api.Result, error) {
		for i := range calls {
			calls[i].Retry = calls[i].Retry || attempt > 1
		}
		return c.Run(ctx, turnID, calls)
	})
}

// normalize makes results equal to the originals: JSON has null for an empty
// Structured.
func normalize(results []*api.Result) []*api.Result {
	for _, r := range results {
		if r != nil && string(r.Structured) == "null" {
			r.Structured = nil
		}
	}
	return results
}

// some returns the calls as a list that is never null in JSON.
func some(calls []api.Call) []api.Call { return append([]api.Call{}, calls...) }

// RunEvents is like Run, and calls show with the turn's events, in order, while the calls
// run. A slow show delays the stream, but not the calls.
func (c *Client) RunEvents(ctx context.Context, turnID string, calls []api.Call, show func(api.Record)) ([]*api.Result, error) {
	return c.runEvents(ctx, endpoint("/api/turns/", turnID, "/calls"), api.Batch{Calls: some(calls)}, show)
}

// RunTurnEvents is like RunTurn, and calls show with the turn's events, in order, while the
// calls run; the first has the turn's ID. A slow show delays the stream, but not the calls.
func (c *Client) RunTurnEvents(ctx context.Context, spec api.TurnSpec, calls []api.Call, show func(api.Record)) ([]*api.Result, error) {
	return c.runEvents(ctx, callsPath, turnOf(spec, calls), show)
}

// ErrBrokenOff is wrapped by the error of a batch whose stream ended before its results: the
// daemon died or is unreachable. In both cases the batch's calls are ended.
var ErrBrokenOff = errors.New("the stream broke off before the results")

func (c *Client) runEvents(ctx context.Context, path string, body any, show func(api.Record)) ([]*api.Result, error) {
	stream, err := c.open(ctx, http.MethodPost, path, body, 0)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for {
		frame, err := stream.frame()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrBrokenOff, err)
		case frame.kind == "results":
			var results api.Results
			err := json.Unmarshal(frame.data, &results)
			return normalize(results.Results), err
		}
		event, err := frame.event()
		if err != nil {
			return nil, err
		}
		show(event)
	}
}

// Streaming tells the daemon that the model starts to stream, or has stopped, and returns
// the turn's new state. It fails if the turn's streaming time is used up, for which the
// daemon aborts the turn, or if the turn is over.
func (c *Client) Streaming(ctx context.Context, turnID string, on bool) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodPost, endpoint("/api/turns/", turnID, "/model"), api.Model{Streaming: on})
}

// End ends a turn and returns once none of its calls runs.
func (c *Client) End(ctx context.Context, turnID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/end"), nil, nil)
}

// Abort aborts a turn's calls; a second Abort while they end kills them at once.
func (c *Client) Abort(ctx context.Context, turnID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/abort"), nil, nil)
}

// AbortCall aborts one call; the turn goes on.
func (c *Client) AbortCall(ctx context.Context, turnID, callID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/turns/", turnID, "/abort-tool/", callID), nil, nil)
}

// Active lists the active turns, oldest first.
func (c *Client) Active(ctx context.Context) ([]api.Turn, error) {
	list, err := c.Running(ctx)
	return list.Turns, err
}

// Running is like Active, and also returns the processes that wait for calls.
func (c *Client) Running(ctx context.Context) (api.Turns, error) {
	return ask[api.Turns](ctx, c, http.MethodGet, "/api/turns/active", nil)
}

// Turn returns the state of an active turn.
func (c *Client) Turn(ctx context.Context, turnID string) (api.Turn, error) {
	return ask[api.Turn](ctx, c, http.MethodGet, endpoint("/api/turns/", turnID), nil)
}

// Raise asks a human a question in a turn and returns the outcome. A question without an
// answer is not an error. If ctx ends first, the daemon withdraws the question.
func (c *Client) Raise(ctx context.Context, turnID string, q api.Question) (api.Raised, error) {
	return ask[api.Raised](ctx, c, http.MethodPost, endpoint("/api/turns/", turnID, "/interactions"), q)
}

// Interactions lists the pending interactions, the most urgent first.
func (c *Client) Interactions(ctx context.Context) ([]api.Interaction, error) {
	var list api.Interactions
	err := c.call(ctx, http.MethodGet, "/api/interactions", nil, &list)
	return list.Interactions, err
}

// Answer answers a pending interaction.
func (c *Client) Answer(ctx context.Context, interactionID string, a api.Answer) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/interactions/", interactionID, "/answer"), a, nil)
}

// Approvals lists the lasting approvals, the oldest first.
func (c *Client) Approvals(ctx context.Context) ([]api.Approval, error) {
	var list api.Approvals
	err := c.call(ctx, http.MethodGet, "/api/approvals", nil, &list)
	return list.Approvals, err
}

// RevokeApproval revokes an approval: calls that it covers need approval again.
func (c *Client) RevokeApproval(ctx context.Context, approvalID string) error {
	return c.call(ctx, http.MethodPost, endpoint("/api/approvals/", approvalID, "/revoke"), nil, nil)
}

// LoginLink returns a new link that logs one browser in.
func (c *Client) LoginLink(ctx context.Context) (api.LoginLink, error) {
	return ask[api.LoginLink](ctx, c, http.MethodPost, "/api/login-links", nil)
}

// IsNotFound reports whether an error means that the daemon does not have the thing, or
// no longer.
func IsNotFound(err error) bool {
	refused, ok := errors.AsType[*api.Error](err)
	return ok && (refused.Status == http.StatusNotFound || refused.Code == "not_found") // an error in a stream has no status
}
