package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// session is what a client's calls have in common. What a client calls itself
// is not part of it.
type session struct {
	gate gate
	id   string // as turns have it
	// sdk is the SDK's; nil if it is loose, or of no client.
	sdk *mcpsdk.ServerSession
	// approvals is the name that approvals are kept by; empty keeps none.
	approvals string
	peer      Peer
	// loose: over HTTP the client has no session. It is one connection's, and
	// keeps no approval: what a proxy sends over one may be of many people.
	loose bool

	mu       sync.Mutex
	open     int // calls that are not over
	budget   budget.Turn
	last     [32]byte // of the newest call
	lastAt   time.Time
	repeats  int // how often it was made in a row
	timedOut []string
}

const (
	// pause without a call is taken for a new thought of the model's.
	pause     = time.Minute
	unlimited = 1 << 30 // calls
)

func (s *Server) newSession(id string, peer Peer) *session {
	return &session{
		gate: gate{most: s.config.Parallel}, id: id, peer: peer, lastAt: time.Now(),
		budget: budget.NewTurn(time.Now(), budget.TurnSpec{MaxCalls: unlimited}),
	}
}

// clientOf is a client's own name.
func clientOf(r *mcpsdk.CallToolRequest) string {
	if said, ok := r.Params.Meta[mcpsdk.MetaKeyClientInfo].(map[string]any); ok { // the SDK takes 32 KiB to decode it
		name, _ := said["name"].(string)
		return cut(name, maxClientBytes)
	}
	if info := r.ClientInfo(); info != nil {
		return cut(info.Name, maxClientBytes)
	}
	return ""
}

// withoutSession says whether a request is one of those that over HTTP have no
// session: of clients of 2026-07-28.
func withoutSession(r *mcpsdk.CallToolRequest) bool {
	return r.Session.ID() == "" && r.Extra != nil && r.Extra.Header != nil
}

// sessionOf finds or makes the session of a request.
func (s *Server) sessionOf(ctx context.Context, r *mcpsdk.CallToolRequest) (found *session) {
	if withoutSession(r) {
		return s.looseOf(peerOf(ctx))
	}
	s.about(r.Session, func(k *known) {
		if k.session == nil {
			k.session = s.newSession(r.Session.ID(), peerOf(ctx))
			k.session.sdk, k.session.approvals = r.Session, rand.Text()
		}
		found = k.session
	})
	return found
}

const (
	// maxLoose bounds the connections without a session that are remembered,
	// where an identity may have as many as are free, and looseIdle how long one
	// without calls is: longer than it would be kept open.
	maxLoose  = 1024
	looseIdle = 5 * time.Minute
)

// looseOf finds or makes what the calls of one connection have in common. Where
// that is not known, or there is no place, a call is alone: none is ever taken
// for another connection's.
func (s *Server) looseOf(peer Peer) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.loose[peer]; found != nil && peer.Connection != nil {
		return found
	}
	made := s.newSession("", peer)
	made.loose = true
	if peer.Connection == nil {
		return made
	}
	maps.DeleteFunc(s.loose, func(_ Peer, one *session) bool { return one.idle(time.Now()) })
	own := 0
	for other := range s.loose {
		if other.Identity == peer.Identity {
			own++
		}
	}
	if share(own, len(s.loose), maxLoose) {
		s.loose[peer] = made
	}
	return made
}

func (s *session) idle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open == 0 && now.Sub(s.lastAt) > looseIdle
}

// enter takes one more call, if there are not too many.
func (s *session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxWaiting+s.gate.most {
		return errFull
	}
	s.open++
	return nil
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// count counts a call, and says how often it was made in a row before.
func (s *session) count(made turn.Call, now time.Time) (before int) {
	key := made.Key()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.Count()
	if key != s.last || now.Sub(s.lastAt) > pause {
		s.repeats = 0
	}
	s.last, s.lastAt = key, now
	s.repeats++
	return s.repeats - 1
}

func (s *session) began() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.budget.Reserve(time.Now(), budget.Infinite)
}

// rests ends what began has begun.
func (s *session) rests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.Release(time.Now())
}

// ended counts what came of a call.
func (s *session) ended(r *api.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAt = time.Now()
	if r.Status == api.StatusTimeout && !slices.Contains(s.timedOut, r.Tool) {
		s.timedOut = append(s.timedOut, r.Tool)
	}
}

// waits tells that a human is waited for, or no longer; runs says whether by a
// call that has begun.
func (s *session) waits(is, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if is {
		s.budget.Waiting(now)
	} else {
		s.budget.Resumed(now)
	}
	switch {
	case !runs:
	case is:
		s.budget.Release(now)
	default:
		s.budget.Again(now)
	}
}

// keeps says whether an approval can be for the session.
func (s *session) keeps() bool { return s.approvals != "" }

// sessionStatus is a turn.Status without the bounds that a session has not.
type sessionStatus struct {
	CallCount     int      `json:"callCount"`
	CallsLeft     *int     `json:"callsLeft"`
	TimedOutTools []string `json:"timedOutTools"`
	ToolTimeMs    int64    `json:"toolTimeMs"`
	HumanWaitMs   int64    `json:"humanWaitMs"`
	RemainingMs   *int64   `json:"remainingMs"`
	Host          any      `json:"host,omitempty"`
}

const statusSchema = `{"type":"object","properties":{
"callCount":{"type":"integer","description":"calls made in this session"},
"callsLeft":{"anyOf":[{"type":"integer"},{"type":"null"}],"description":"null: there is no cap"},
"timedOutTools":{"type":"array","items":{"type":"string"},"description":"tools that have timed out, each once, the newest first"},
"toolTimeMs":{"type":"integer","description":"time in which calls ran"},
"humanWaitMs":{"type":"integer","description":"time spent waiting for a human"},
"remainingMs":{"anyOf":[{"type":"integer"},{"type":"null"}],"description":"null: there is no bound"},
"host":{"type":"object","description":"the host's load: calls that run, that wait, and that cannot be killed"}},
"required":["callCount","callsLeft","timedOutTools","toolTimeMs","humanWaitMs","remainingMs"]}`

func statusTool() *mcpsdk.Tool {
	return &mcpsdk.Tool{
		Name: turn.StatusTool, Title: "Session status", Description: "Tells how many calls this session has made, which tools have timed out, and how the host is. It changes nothing.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`), OutputSchema: json.RawMessage(statusSchema),
		Annotations: &mcpsdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	}
}

// status answers session_status.
func (s *Server) status(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	one := s.sessionOf(ctx, r)
	now := time.Now()
	one.mu.Lock()
	status := sessionStatus{
		CallCount: one.budget.Calls(), TimedOutTools: turn.ShortNames(one.timedOut),
		ToolTimeMs: one.budget.ToolTime(now).Milliseconds(), HumanWaitMs: one.budget.HumanWait(now).Milliseconds(),
	}
	one.mu.Unlock()
	status.Host = turn.ShortHealth(s.config.Health)
	result := supervisor.Verdict{CallID: rand.Text(), Tool: turn.StatusTool, Status: api.StatusOK}.Result()
	var err error
	if result.Structured, err = json.Marshal(status); err != nil {
		return nil, fmt.Errorf("bug: cannot write the status: %w", err)
	}
	out := present(result, outputCheck{declared: true}, r.ProtocolVersion(), nil)
	out.Meta = nil // nothing was run
	return out, nil
}
