package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/turn"
)

// Asker puts the questions of turns to the MCP clients that began them. It
// implements turn.Interactor, and knows of no other turns.
type Asker struct {
	mu    sync.Mutex
	calls map[string]*call // by turn
}

// NewAsker makes one, for a turn.Manager and the Server that uses it.
func NewAsker() *Asker { return &Asker{calls: map[string]*call{}} }

func (a *Asker) add(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[c.t.ID()] = c
}

func (a *Asker) remove(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.calls, c.t.ID())
}

var errNotForTheirOwn = errors.New("nobody answers for calls of their own")

var errNotOurs = errors.New("the turn is not of an MCP client")

var _ turn.ClientInteractor = (*Asker)(nil)

// AsksClients implements turn.ClientInteractor.
func (a *Asker) AsksClients() {}

// Ask implements turn.Interactor.
func (a *Asker) Ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	a.mu.Lock()
	c := a.calls[i.TurnID]
	a.mu.Unlock()
	if c == nil {
		return api.Answer{}, errNotOurs
	}
	return c.ask(ctx, i)
}

// canAsk says whether a client shows forms. One that names no mode means that.
func canAsk(caps *mcpsdk.ClientCapabilities) bool {
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// canOpen says whether a client has addresses opened.
func canOpen(caps *mcpsdk.ClientCapabilities) bool {
	return caps != nil && caps.Elicitation != nil && caps.Elicitation.URL != nil
}

const secretNote = "a secret was asked for, which MCP forbids in a form: have the operator configure it under secrets"

// ask puts a question to the client's human. Only a valid answer can mean
// yes.
func (c *call) ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	by := c.by()
	if i.Request != nil { // a wrapped server's, to its client: it approves no call
		return c.askClient(ctx, i)
	}
	if !c.s.rights.mayAnswer(c.session.peer.Identity, i) {
		return api.Answer{}, errNotForTheirOwn
	}
	if i.Secret || i.Kind == api.KindPassword {
		if c.s.config.OthersAnswer {
			return api.Answer{}, errors.New(secretNote)
		}
		c.note(secretNote)
		return api.Answer{By: "MCP: no secrets by form", Unanswered: api.OutcomeFailed}, nil
	}
	f := formOf(i, c.session.keeps(), c.version)
	given, err := c.elicit(ctx, i, f.params(i), f)
	switch {
	case ctx.Err() != nil:
		return api.Answer{}, ctx.Err()
	case err != nil:
		c.s.config.Logger.Warn("a client could not be asked", "client", by, "tool", i.Tool, "error", err)
		c.note(whyNot(err, "the client could not ask a human: "))
		return api.Answer{By: by + ", which could not ask", Unanswered: api.OutcomeFailed}, nil
	}
	answer := f.answer(given.(*mcpsdk.ElicitResult)) // another one does not fit
	answer.By, answer.Meta = by, metaOfAnswer(given)
	return answer, nil
}

// by is who answers, for the record: who has authenticated first.
func (c *call) by() string {
	name := "MCP client " + c.client
	if identity := c.session.peer.Identity; identity != "" {
		return identity + ", " + name
	}
	return name
}

// elicit asks by a request, or by the answer to one. A form's answer fits.
func (c *call) elicit(ctx context.Context, i api.Interaction, params mcpsdk.InputRequest, f form) (given mcpsdk.InputResponse, err error) {
	if c.rounds {
		given, err = c.put(ctx, i, params, f)
	} else {
		given, err = c.request(ctx, params)
	}
	if err == nil {
		err = f.unfit(i, given)
	}
	return given, err
}

// request asks by a request.
func (c *call) request(ctx context.Context, params mcpsdk.InputRequest) (mcpsdk.InputResponse, error) {
	c.mu.Lock()
	l := c.newest()
	c.mu.Unlock()
	if l == nil {
		return nil, errors.New("its request has ended")
	}
	asking, cancel := context.WithCancel(l.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	switch p := params.(type) {
	case *mcpsdk.ElicitParams:
		c.s.gateway.AskedToOpen(l.ctx, l.session, c.origin(), p.ElicitationID)
		return l.session.Elicit(asking, unjudged(withID(p)))
	case *mcpsdk.CreateMessageWithToolsParams:
		return l.session.CreateMessageWithTools(asking, p)
	case *mcpsdk.ListRootsParams:
		return l.session.ListRoots(asking, p)
	}
	return nil, errors.New("bug: a client is asked for something unknown")
}

// question is one that a request is to be answered by.
type question struct {
	params  mcpsdk.InputRequest
	asked   api.Interaction
	form    form
	expires time.Time
	answer  chan mcpsdk.InputResponse // holds one
	round   int                       // in which it was sent first; 0 before
	message string                    // of an elicitation
	unfit   int                       // answers that did not fit, and after which it is asked again
}

// compare orders questions as they are asked together, and then by their expiry.
func (q *question) compare(other *question) int {
	return cmp.Or(q.nth()-other.nth(), q.expires.Compare(other.expires))
}

func (q *question) nth() int {
	if q.asked.Request == nil {
		return 0
	}
	return q.asked.Request.Nth
}

// maxStates bounds the calls that have asked something by answering requests. An
// identity may have as many as are free.
const maxStates = 1024

// put leaves a question for the request that waits, and waits for the one that
// comes back.
func (c *call) put(ctx context.Context, i api.Interaction, params mcpsdk.InputRequest, f form) (mcpsdk.InputResponse, error) {
	if c.mute {
		return nil, errors.New("a request of this kind cannot be answered by a question")
	}
	c.s.endLeft(c.session.peer.Identity)
	if !c.keepState() {
		return nil, errors.New("too many questions wait for answers")
	}
	q := &question{params: params, asked: i, form: f, expires: i.ExpiresAt, answer: make(chan mcpsdk.InputResponse, 1)}
	if p, is := params.(*mcpsdk.ElicitParams); is {
		q.message = p.Message
	}
	key := keyOf(i)
	c.mu.Lock()
	c.questions[key] = q
	c.mu.Unlock()
	c.arrived(i)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.questions, key)
	}()
	select {
	case result := <-q.answer:
		return result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keyOf is what a client knows a question by: a wrapped server's own key.
func keyOf(i api.Interaction) string {
	if i.Request != nil && i.Request.Key != "" {
		return i.Request.Key
	}
	return i.ID
}

// arrived tells the request that waits of a question, once all that are asked with
// it are there, or cannot be asked.
func (c *call) arrived(i api.Interaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := i.Request; r != nil && r.Of > 1 {
		if c.groups[r.Group]++; c.groups[r.Group] < r.Of {
			return
		}
		delete(c.groups, r.Group)
	}
	c.signal()
}

func (c *call) signal() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// keepState gives the call what requests come back by.
func (c *call) keepState() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle != "" {
		return true
	}
	own := 0
	for _, other := range c.s.states {
		if other.session.peer.Identity == c.session.peer.Identity {
			own++
		}
	}
	if !share(own, len(c.s.states), maxStates) {
		return false
	}
	c.handle = rand.Text()
	c.s.states[c.handle] = c
	return true
}

// stateOf is the requestState of a round of questions. Each that a call has sent leads to
// it, by the one handle: a client may come back with any of them.
func (c *call) stateOf(round int) string { return c.handle + "." + strconv.Itoa(round) }

// asker is the call, and its round, that has sent a requestState; nil if none has.
func (s *Server) asker(state string) (c *call, round int) {
	handle, number, _ := strings.Cut(state, ".")
	s.mu.Lock()
	c = s.states[handle]
	s.mu.Unlock()
	if round, _ = strconv.Atoi(number); c == nil || !c.hasSent(round) || state != c.stateOf(round) {
		return nil, 0
	}
	return c, round
}

func (c *call) hasSent(round int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 0 < round && round <= c.round
}

// maxLeft bounds the questions of one identity that connections have left behind
// when they ended.
const maxLeft = 64

// endLeft ends the calls that were left behind first, where an identity has too
// many of those.
func (s *Server) endLeft(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.leftBy(identity)
	slices.SortFunc(left, func(a, b *call) int { return a.begun.Compare(b.begun) })
	for _, c := range left[:max(0, len(left)-maxLeft)] {
		c.endIfLeft()
	}
}

// leftBy are the calls that an identity's connections have left behind. s is
// locked.
func (s *Server) leftBy(identity string) (left []*call) {
	for _, c := range s.states {
		if c.session.peer.Identity == identity && c.isLeft() {
			left = append(left, c)
		}
	}
	return left
}

// isLeft says that a question was sent over a connection that has ended, and
// nobody has come back.
func (c *call) isLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left()
}

// endIfLeft ends the call, unless somebody has come back by now.
func (c *call) endIfLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left() {
		c.parked.Reset(0)
	}
}

// left is isLeft for who has locked the call.
func (c *call) left() bool {
	return c.parked != nil && len(c.pending) == 0 && !c.aborted && c.session.loose && c.session.peer.gone()
}

// answered hands an answer to the question that was sent in its round: a server may ask
// twice by one key. One that comes twice, or too late, changes nothing.
func (c *call) answered(round int, id string, result mcpsdk.InputResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.questions[id]; q != nil && 0 < q.round && q.round <= round && !q.again(result) {
		delete(c.questions, id)
		q.answer <- result
	}
}

// afterExpiry is how long a client that was asked may be late before it counts
// as gone.
const afterExpiry = 5 * time.Second

// question is the answer to a request with all that is asked; nil if that is
// nothing. The call goes on without it, until the last question has expired.
func (c *call) question() *verbatim.Inputs {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.questions) == 0 {
		return nil
	}
	c.round++
	result := &verbatim.Inputs{Requests: mcpsdk.InputRequestMap{}, State: c.stateOf(c.round)}
	var expires time.Time
	result.Keys = slices.SortedFunc(maps.Keys(c.questions), func(a, b string) int { return c.questions[a].compare(c.questions[b]) })
	for _, id := range result.Keys {
		q := c.questions[id]
		result.Requests[id] = q.params
		q.round = cmp.Or(q.round, c.round)
		if q.expires.After(expires) {
			expires = q.expires
		}
	}
	if c.parked != nil {
		c.parked.Stop()
	}
	c.parked = time.AfterFunc(time.Until(expires)+afterExpiry, func() { c.abandoned(api.ReasonDisconnect) })
	return result
}

// abandoned ends a call whose client has not come back, or says that it will not.
func (c *call) abandoned(reason api.Reason) {
	c.mu.Lock()
	alone := len(c.pending) == 0
	c.mu.Unlock()
	if alone {
		c.abort(reason)
	}
}

// giveUp ends the call that has sent a requestState, whatever its round, unless a request
// waits for it.
func (s *Server) giveUp(state string) {
	if c, _ := s.asker(state); c != nil {
		c.abandoned(api.ReasonUser)
	}
}
