package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// call is one tool call. It outlives the request that began it where that is
// answered by a question.
type call struct {
	s        *Server
	session  *session
	caps     *mcpsdk.ClientCapabilities
	version  string // of the protocol that the client speaks
	client   string // what the client calls itself: it is shown, and says how long it waits
	t        *turn.Turn
	made     turn.Call
	begun    time.Time
	offer    offer
	rounds   bool          // it asks by answering requests
	mute     bool          // its request cannot be answered so
	leave    func()        // gives its place back; the turn's, and read once that is over
	placed   bool          // it has had a place, as well
	asked    chan struct{} // a question is new; holds one
	done     chan struct{} // closed when result is there
	caughtUp chan struct{} // closed when all that happened before was sent
	result   *api.Result   // written before done is closed

	mu        sync.Mutex
	pending   []*pendingRequest    // requests that wait for it, the newest last
	questions map[string]*question // for requests to be answered by
	groups    map[string]int       // questions that are asked together: how many have come
	handle    string               // by which such requests come back; empty before the first
	round     int                  // how often questions were sent
	parked    *time.Timer          // while a question was sent and nobody waits
	notes     []string             // for the model
	cause     string               // what the server has ended it for, for its message
	aborted   bool
	ending    bool // its time is over, the kill ladder runs
}

// make makes a call, or joins a request to one. Where the answer to a request cannot be a
// question, mayAsk is false: then nobody is asked whose client would have to come back.
func (s *Server) make(ctx context.Context, r *mcpsdk.CallToolRequest, mayAsk bool) (reply, error) {
	received := time.Now()
	if r.Params.RequestState != "" {
		return s.resume(ctx, r, received)
	}
	one := s.sessionOf(ctx, r)
	made := turn.Call{ID: rand.Text(), Tool: r.Params.Name, Arguments: r.Params.Arguments}
	if string(made.Arguments) == "null" {
		made.Arguments = nil
	}
	made.Before = one.count(made, received)
	caps := r.ClientCapabilities() // the SDK decodes them anew each time
	made.Meta, made.Client = metaOf(r), s.clientFor(r, caps)
	made.TraceParent, _ = r.Params.Meta["traceparent"].(string)
	rounds, client := r.ProtocolVersion() >= multiRound, clientOf(r)
	if !rounds { // its one request waits for everything
		made.Until = s.until(client, received)
	}
	mute := rounds && !mayAsk
	attended := !s.config.Headless && !mute
	c, err := s.begin(one, client, made, turn.Spec{Headless: !attended || !canAsk(caps), OpensAddresses: attended && canOpen(caps)})
	if err != nil {
		return reply{result: refusal(made, api.StatusOverloaded, fullOf(err), "", err.Error()), output: s.offerOf(made.Tool).output}, nil
	}
	c.version, c.rounds, c.mute, c.caps = r.ProtocolVersion(), rounds, mute, caps
	l := c.attach(ctx, r) // before anything can be asked
	go c.run()
	return c.attend(ctx, l, r, received)
}

// fullOf is the reason of a call that there is no room for.
func fullOf(err error) api.Reason {
	if errors.Is(err, turn.ErrNoRoom) {
		return api.ReasonQuota
	}
	if errors.Is(err, errFull) || errors.Is(err, errShare) || errors.Is(err, turn.ErrTooMany) {
		return api.ReasonSession
	}
	return api.ReasonHost
}

// refusal is the result of a call that has no turn.
func refusal(made turn.Call, status api.Status, reason api.Reason, decider, why string) *api.Result {
	prefix := "[FAILED]"
	if status == api.StatusDenied {
		prefix = "[DENIED]"
	}
	return supervisor.Verdict{
		CallID: made.ID, Tool: made.Tool, Status: status, Reason: reason, Decider: decider,
		Message: fmt.Sprintf("%s The call of tool %q was not made: %s. Nothing was changed.", prefix, made.Tool, why),
	}.Result()
}

// metaOf is what a client says beside the arguments, without what is the
// protocol's own.
func metaOf(r *mcpsdk.CallToolRequest) json.RawMessage {
	written := writtenIn(r.Params.Meta)
	if written == nil && ownMeta(r.Params.Meta) != nil { // it was too long to be kept
		written, _ = json.Marshal(r.Params.Meta) // of what was decoded from JSON
	}
	own := ownMeta(object.Of(written))
	if own == nil {
		return nil
	}
	raw, _ := json.Marshal(own) // of JSON
	return raw
}

var errClosed = errors.New("toolhost is about to end")

// begin begins a call's turn; run, which must follow, makes the call.
func (s *Server) begin(one *session, client string, made turn.Call, spec turn.Spec) (*call, error) {
	c := &call{
		s: s, session: one, client: client, made: made, begun: time.Now(), leave: func() {}, offer: s.offerOf(made.Tool),
		asked: make(chan struct{}, 1), done: make(chan struct{}), questions: map[string]*question{}, groups: map[string]int{}, caughtUp: make(chan struct{}),
	}
	if err := one.enter(); err != nil {
		return nil, err
	}
	spec.AgentID, spec.SessionID, spec.ApprovalSession, spec.Single, spec.Budget = client, one.id, one.approvals, true, s.budget(s.timeout(client))
	s.rights.claim(one.peer.Identity, &spec)
	t, err := s.config.Turns.Begin(spec)
	if err != nil {
		one.leave()
		if errors.Is(err, turn.ErrTooMany) || errors.Is(err, turn.ErrNoRoom) {
			err = fmt.Errorf("%w: end some, and try again", err)
		}
		return nil, err
	}
	c.t, c.made.Place, c.made.Leave = t, c.place, c.rest
	if err := s.admit(c); err != nil {
		t.End()
		one.leave()
		return nil, err
	}
	s.config.Asker.add(c)
	return c, nil
}

const (
	maxClientBytes = 128
	// maxCalls bounds the calls at once. An identity may have as many as are
	// free. Turns that are not of MCP have room beside them.
	maxCalls = 768
)

var errShare = errors.New("too many calls of this client are under way, or wait for a human: make fewer at once")

// admit takes a call on.
func (s *Server) admit(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for other := range s.active {
		if other.session.peer.Identity == c.session.peer.Identity {
			own++
		}
	}
	switch {
	case s.closed:
		return errClosed
	case !share(own, len(s.active), maxCalls):
		return errShare
	}
	s.active[c] = true
	s.calls.Add(1)
	return nil
}

// place waits for the call's place in the session. A human who is asked whether
// it may be made has answered before: nobody waits for that in line.
func (c *call) place(ctx context.Context) error {
	leave, err := c.session.gate.enter(ctx, c, c.offer.exclusive)
	if err != nil {
		return err
	}
	c.leave = leave
	if !c.placed {
		c.placed = true
		c.session.began()
	}
	return nil
}

// rest gives the place back while the call waits for an answer without a process: the client
// may never come back. Then the call waits in line again. One whose process is there keeps
// its place, also if it waits for an answer: those behind are told so, see behind.
func (c *call) rest() {
	c.leave()
	c.leave = func() {}
}

// free gives back what a call had in its session.
func (c *call) free() {
	if c.placed {
		c.session.rests()
	}
	c.leave()
}

// run makes the call. Its place in the session is free again once the turn has
// ended: then all of it is gone.
func (c *call) run() {
	defer c.s.calls.Done()
	defer c.forget()
	var watched sync.WaitGroup
	watched.Go(c.watch)
	defer watched.Wait()
	defer c.free()
	defer c.t.End() // before leaving
	results, err := c.t.Run(context.Background(), []turn.Call{c.made})
	if err != nil {
		results = []*api.Result{refusal(c.made, api.StatusOverloaded, "host", "", err.Error())}
	}
	c.session.ended(results[0])
	c.finish(results[0])
	runtime.Gosched() // who waits for the answer may go first
}

func (c *call) finish(r *api.Result) {
	c.result = r
	close(c.done)
}

// forget ends what the server keeps of the call. A request that comes back for
// its result still finds it for a while.
func (c *call) forget() {
	s := c.s
	s.config.Asker.remove(c)
	c.session.leave()
	c.mu.Lock()
	handle := c.handle
	if c.parked != nil {
		c.parked.Stop()
	}
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, c)
	if handle != "" {
		time.AfterFunc(keepResult, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.states, handle)
		})
	}
}

// keepResult is how long a result waits for a request that was answered by a
// question.
const keepResult = time.Minute

// abort begins the kill ladder, once: a client that cancels and goes away has
// not asked for more than one.
func (c *call) abort(reason api.Reason) {
	c.mu.Lock()
	before := c.aborted
	c.aborted = true
	c.mu.Unlock()
	if !before {
		c.t.Abort(reason)
	}
}

// kill ends the call at once.
func (c *call) kill(reason api.Reason) {
	c.abort(reason)
	c.t.Abort(api.ReasonUser) // another reason would leave it its grace
}

func (c *call) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

func (c *call) because(cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = cause
}

// attend keeps a request waiting until there is an answer to it.
func (c *call) attend(ctx context.Context, l *pendingRequest, r *mcpsdk.CallToolRequest, received time.Time) (reply, error) {
	defer c.detach(l)
	defer c.s.whenDisconnected(r, func() { c.abort(api.ReasonDisconnect) })()
	limits := limitsOf(c.s.timeout(c.client), received)
	defer limits.stop()
	for {
		select {
		case <-c.done:
			<-c.caughtUp
			return c.reply(), nil
		case <-c.asked:
			if asks := c.question(); asks != nil {
				return reply{asks: asks}, nil
			}
		case <-limits.end:
			c.timeUp()
		case <-limits.kill:
			c.kill(api.ReasonTimeout)
		case <-ctx.Done():
			c.abort(reasonOf(ctx))
			<-c.done
			return c.reply(), nil
		}
	}
}

// reasonOf tells a cancellation from a connection that has ended; over HTTP that is a
// cancellation since 2026-07-28.
func reasonOf(ctx context.Context) api.Reason {
	if cause := context.Cause(ctx); cause == context.Canceled { //nolint:errorlint // wrapped, it is another's
		return api.ReasonUser
	}
	return api.ReasonDisconnect
}

// timeUp ends a call whose own deadline comes too late for the client: it has
// waited in line or for a human.
func (c *call) timeUp() {
	c.mu.Lock()
	ending := c.ending || c.aborted
	c.mu.Unlock()
	if !ending {
		c.because("The call was ended: " + c.behind() + clientWaits(c.s.timeout(c.client), "") + ".")
		c.t.Expire() // what nobody has approved is denied for that
		c.abort(api.ReasonTimeout)
	}
}

// behind says what a call waits for that is in line; empty if it is not.
func (c *call) behind() string {
	first := c.session.gate.ahead(c)
	if first == nil {
		return ""
	}
	asks := ""
	if info, _ := first.t.Info(); len(info.PendingInteractions) > 0 {
		asks = ", which waits for an answer to a question of its own"
	}
	return fmt.Sprintf("it waited in line behind a call of the tool %q%s, and ", first.made.Tool, asks)
}

// resume joins a request that comes back with answers to the call that has
// asked. It never begins one.
func (s *Server) resume(ctx context.Context, r *mcpsdk.CallToolRequest, received time.Time) (reply, error) {
	p := r.Params
	c, round := s.asker(p.RequestState)
	why := ""
	switch {
	case c == nil || !s.continues(ctx, r, c):
		why = "the question that it answers is closed: its call has ended or never existed; call the tool again without requestState"
	case c.made.Key() != (turn.Call{Tool: p.Name, Arguments: p.Arguments}).Key():
		why = "its requestState is that of a call with another name or other arguments: come back with that call's own, or leave requestState out for a new call"
	}
	if why != "" {
		return reply{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid requestState: " + why}
	}
	for id, response := range maps.All(p.InputResponses) {
		c.answered(round, id, response)
	}
	return c.attend(ctx, c.attach(ctx, r), r, received)
}

// continues says whether a request is of the client that made a call: of the
// same session, or without one, of an authenticated client that knows its
// requestState.
func (s *Server) continues(ctx context.Context, r *mcpsdk.CallToolRequest, c *call) bool {
	if withoutSession(r) {
		return c.session.loose && c.session.peer.Identity == peerOf(ctx).Identity
	}
	return c.session == s.sessionOf(ctx, r)
}
