package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/supervisor"
)

// maxRounds bounds how often a server may ask for something before its result.
const maxRounds = 16

// rounds is one call of as many processes as its server asks for something: each
// has ended, with proof, before people or the client are asked, and the next one is
// given what they have said.
type rounds struct {
	b       *batch
	e       *entry
	s       *starting
	request supervisor.Request
	waited  time.Duration // for answers, between its processes

	mu      sync.Mutex
	running Running            // the last one
	waits   context.CancelFunc // ends the wait for an answer; nil without one
	aborted api.Reason         // the first abort's: no process begins after it
}

// Abort implements Running.
func (r *rounds) Abort(reason api.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running.Abort(reason)
	r.aborted = cmp.Or(r.aborted, reason)
	if r.waits != nil {
		r.waits()
	}
}

// Gone implements Processes, for the last process.
func (r *rounds) Gone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return processesOf(r.running).Gone()
}

// Current implements Processes.
func (r *rounds) Current() (now cgroup.Current, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return processesOf(r.running).Current()
}

// Result implements Running. It is called once.
func (r *rounds) Result() *api.Result {
	defer r.forget()
	result := r.running.Result()
	var before []*api.Result
	for {
		in := inputOf(result)
		switch {
		case in == nil:
			return r.together(before, result)
		case len(before) == maxRounds:
			result = supervisor.Verdict{
				Tool: result.Tool, Status: api.StatusProtocolError, Reason: api.ReasonServer,
				Message: "[FAILED] The tool's server keeps asking for more input and gives no result.",
			}.Result()
			return r.together(before, result)
		}
		before = append(before, result)
		if instead := r.next(in, before); instead != nil {
			return r.together(before, instead)
		}
		result = r.running.Result()
	}
}

// together is the one result of the rounds. What was waited for between them counts as
// within a process that asks.
func (r *rounds) together(before []*api.Result, last *api.Result) *api.Result {
	own := together(before, last, r.request.Tool)
	if waited := r.waited.Milliseconds(); waited > 0 {
		own.Timing.HumanWaitMs += waited
		own.Timing.ElapsedMs += waited
	}
	return own
}

// forget holds on to no result.
func (r *rounds) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = answered{processesOf(r.running).Gone()}
}

// answered is a call that has given its result; processes of it may be left.
type answered struct{ gone <-chan struct{} }

func (answered) Abort(api.Reason)                             {}
func (answered) Result() *api.Result                          { return nil }
func (a answered) Gone() <-chan struct{}                      { return a.gone }
func (answered) Current() (none cgroup.Current, running bool) { return none, false }

// next asks for what a server wants and begins the next process with it. A result is
// that of a call which ends instead.
func (r *rounds) next(in *input, before []*api.Result) (instead *api.Result) {
	left := leftOf(before)
	if ended := left.ended(r.e.call, before[len(before)-1]); ended != nil {
		return ended
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if reason := r.wait(cancel); reason != "" {
		return cancelled(r.e.call, reason, abortedBetween)
	}
	answers, wrong, err := r.gather(ctx, in, len(before))
	switch reason := r.wait(nil); {
	case reason != "":
		return cancelled(r.e.call, reason, abortedBetween)
	case wrong != "":
		return unanswered(r.e.call, wrong)
	case err != nil:
		return placeless(r.e.call, err)
	}
	request := left.bound(r.request)
	request.Client = withAnswers(request.Client, answers, in.RequestState)
	r.goOn(r.b.t.m.config.Start(r.s.ctx, request))
	return nil
}

// wait has an abort end a wait, if there is one, and says why the call was aborted.
func (r *rounds) wait(end context.CancelFunc) api.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = end
	if r.s.ctx.Err() != nil { // before the first process was there
		return cmp.Or(r.aborted, r.s.reason)
	}
	return r.aborted
}

// goOn has another process. An abort may have come while it was prepared.
func (r *rounds) goOn(next Running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running = next; r.aborted != "" {
		next.Abort(r.aborted)
	}
}

// unanswered is the result of a call whose server wants what nobody can give: another
// process could only ask for it again.
func unanswered(c Call, wrong string) *api.Result {
	why := "The tool's server " + wrong + "."
	r := supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Status: api.StatusToolError, Message: "[FAILED] " + why}.Result()
	r.ToolError = &api.ToolError{Kind: "error", Message: why}
	return r
}

// idleRound is how long a server that asks for nothing is left alone, longer each
// time.
const idleRound = 100 * time.Millisecond

// noRoots stands for the folders of a client that has none: the adapter puts those
// that are granted in its place.
var noRoots = json.RawMessage(`{"roots":null}`)

// gather has a server's requests answered, by its keys, and the call rests meanwhile; wrong
// is what the server has done that nobody can answer, and err why the call cannot go on.
func (r *rounds) gather(ctx context.Context, in *input, round int) (answers json.RawMessage, wrong string, err error) {
	if len(in.InputRequests) == 0 {
		select {
		case <-time.After(time.Duration(round) * idleRound):
		case <-ctx.Done():
		}
		return nil, "", nil
	}
	r.rest()
	began := r.b.t.now()
	said := r.b.requests(ctx, r.e, in.InputRequests)
	r.waited += r.b.t.now().Sub(began)
	if said.Denied != "" {
		return nil, said.Denied, nil
	}
	given := map[string]json.RawMessage{}
	_ = json.Unmarshal(said.Value, &given) // as it was made
	for _, one := range in.InputRequests {
		refused := refusedIn(given[one.key])
		switch {
		case one.Method == methodRoots && (given[one.key] == nil || refused != ""):
			given[one.key] = noRoots
		case refused != "":
			wrong = "asked for " + one.Method + ", and the client of this call has refused that: " + refused
		case given[one.key] == nil:
			wrong = "asked for " + one.Method + ", and the client of this call cannot give that"
		}
	}
	if wrong == "" {
		err = r.again(ctx)
	}
	answers, _ = json.Marshal(given) // of what was decoded from JSON
	return answers, wrong, err
}

// maxRefusalBytes bounds what is shown of a client's error.
const maxRefusalBytes = 2 << 10

// refusedIn says by which error a client has refused an answer; empty if it has not.
func refusedIn(answer json.RawMessage) string {
	var fields map[string]*struct {
		Code    int64
		Message string
	}
	if json.Unmarshal(answer, &fields) != nil || fields[api.RefusedKey] == nil {
		return ""
	}
	e := fields[api.RefusedKey]
	return fmt.Sprintf("%s (code %d)", text.Begin(cmp.Or(e.Message, "an error without a message"), maxRefusalBytes), e.Code)
}

// input is what a server asks for in place of a result.
type input struct {
	ResultType    string        `json:"resultType"`
	InputRequests inputRequests `json:"inputRequests"`
	RequestState  string        `json:"requestState"`
}

// inputOf is nil for a result that is one.
func inputOf(r *api.Result) *input {
	var in input
	if !r.OK() || len(r.Meta) == 0 || json.Unmarshal(r.Meta, &in) != nil || in.ResultType != "input_required" {
		return nil
	}
	return &in
}

// withAnswers is what an adapter is told, with the answers to its server.
func withAnswers(client, answers json.RawMessage, state string) json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(client, &fields)
	delete(fields, "inputResponses")
	if answers != nil {
		fields["inputResponses"] = answers
	}
	fields["requestState"], _ = json.Marshal(state)
	raw, err := json.Marshal(fields)
	if err != nil {
		return client
	}
	return raw
}
