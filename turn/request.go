package turn

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// ClientInteractor marks an Interactor that can answer the requests of servers to their
// clients: interactions of a kind that is OfClient. Nobody else can answer them, so an
// error of Ask ends them, and without a ClientInteractor they fail at once.
type ClientInteractor interface {
	Interactor
	AsksClients()
}

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"

	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"

	// maxClientRequests bounds those of one question.
	maxClientRequests = 8
	// maxRequestBytes bounds what one holds.
	maxRequestBytes = 1 << 20
)

// elicited is the answer to elicitation/create.
type elicited struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
	Meta    json.RawMessage `json:"_meta,omitempty"`
}

// requests has what a server asks of its client answered, each as an interaction of
// its own and all at once. What nobody gives is missing.
func (b *batch) requests(ctx context.Context, e *entry, asked inputRequests) supervisor.Answer {
	if len(asked) > maxClientRequests {
		return supervisor.Answer{Denied: fmt.Sprintf("asked for %d things at once, and may ask for %d", len(asked), maxClientRequests)}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	given := map[string]json.RawMessage{}
	before := make(chan struct{}) // closed once the one before is put to somebody
	close(before)
	for _, i := range b.interactions(e, asked) {
		turn, put := before, make(chan struct{})
		before = put
		all.Go(func() {
			next := sync.OnceFunc(func() { close(put) })
			defer next()
			<-turn
			value := b.ofClient(ctx, e, i, next)
			mu.Lock()
			defer mu.Unlock()
			if value != nil {
				given[i.Request.Key] = value
			}
		})
	}
	all.Wait()
	raw, err := json.Marshal(given)
	if err != nil {
		return supervisor.Answer{Denied: err.Error()}
	}
	return supervisor.Answer{Value: raw}
}

// interactions are those of the requests that can be put to somebody.
func (b *batch) interactions(e *entry, asked inputRequests) (list []api.Interaction) {
	group, of := rand.Text(), 0 // how many are put to the client, or to people
	for _, one := range asked {
		i, err := interactionOf(&api.ClientRequest{Method: one.Method, Params: one.Params, Key: one.key, Group: group, Nth: len(list)}, e.tool.Request.Tool.Label)
		if err != nil {
			continue
		}
		i.CallID, i.Tool = e.key, e.call.Tool
		list = append(list, i)
		if !b.t.people.miss(i) {
			of++
		}
	}
	for _, i := range list {
		i.Request.Of = of
	}
	return list
}

// ofClient is the answer to one request, or nil if nobody gave one. put is called once
// it is put to somebody, if it is.
func (b *batch) ofClient(ctx context.Context, e *entry, i api.Interaction, put func()) json.RawMessage {
	wait, warning, err := b.t.wait(i.Kind, e.tool, 0)
	if err != nil {
		return nil
	}
	wait, _ = e.call.Until.cut(wait, b.t.now())
	s := b.open(ctx, e, i, wait, warning, put)
	if i.Kind.OfClient() {
		switch {
		case s.outcome == api.OutcomeAnswered:
			return s.answer.Value
		case len(s.answer.Refusal) > 0:
			raw, _ := json.Marshal(map[string]json.RawMessage{api.RefusedKey: s.answer.Refusal}) // of JSON
			return raw
		}
		return nil
	}
	answer := elicitedBy(s, len(i.Schema) > 0)
	answer.Meta = s.answer.Meta
	if s.outcome == api.OutcomeHeadless && answer.Action == actionCancel {
		b.t.post(func() { e.unasked = true })
	}
	raw, _ := json.Marshal(answer) // of strings and checked JSON
	return raw
}

func elicitedBy(s settled, form bool) elicited {
	switch {
	case s.outcome == api.OutcomeAnswered && form:
		return elicited{Action: actionAccept, Content: s.answer.Value}
	case s.outcome == api.OutcomeAnswered && s.answer.Approve:
		return elicited{Action: actionAccept}
	case s.outcome == api.OutcomeAnswered, s.outcome == api.OutcomeDenied:
		return elicited{Action: actionDecline}
	case s.outcome == api.OutcomeHeadless && form && len(s.answer.Value) > 0:
		return elicited{Action: actionAccept, Content: s.answer.Value}
	}
	return elicited{Action: actionCancel}
}

// interactionOf is how a request of a server's is put to people, or to the client.
func interactionOf(r *api.ClientRequest, server string) (api.Interaction, error) {
	i := api.Interaction{Request: r}
	if len(r.Params) > maxRequestBytes {
		return i, errors.New("the request is too large")
	}
	switch r.Method {
	case methodSample:
		i.Kind = api.KindSampling
	case methodRoots:
		i.Kind = api.KindRoots
	case methodElicit:
		return elicitation(i, r, server)
	default:
		return i, errors.New("no client answers " + r.Method)
	}
	return i, nil
}

func elicitation(i api.Interaction, r *api.ClientRequest, server string) (api.Interaction, error) {
	var p struct {
		Mode, Message, URL string
		RequestedSchema    json.RawMessage
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return i, err
	}
	i.Kind, i.Prompt = api.KindQuestionnaire, p.Message
	if p.Mode == "url" {
		r.URL, r.Server = p.URL, cmp.Or(server, "The tool's server")
		i.Prompt = r.Server + " asks you to open an address. Open it yourself if you trust it; nothing opens it for you. Yes says that you will.\n" + p.URL + "\n" + p.Message
	} else if string(p.RequestedSchema) != "null" {
		i.Schema = p.RequestedSchema
	}
	return i, checkSize(i.Prompt, i.Schema)
}
