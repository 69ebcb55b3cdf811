package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// session is what a client's calls have in common.
type session struct {
	gate   gate
	id     string // as turns have it
	client string // its name for itself
	shared bool   // by all connections of that client: they have no session

	mu       sync.Mutex
	budget   budget.Turn
	last     [32]byte // of the newest call
	lastAt   time.Time
	repeats  int // how often it was made in a row
	timedOut []string
	always   map[string]bool // tools that a human has approved for the session
}

const (
	// maxShared bounds the sessions of clients that have none.
	maxShared = 64
	// pause without a call is taken for a new thought of the model's.
	pause     = time.Minute
	unlimited = 1 << 30 // calls
)

func (s *Server) newSession(id, client string) *session {
	return &session{
		gate: gate{most: s.config.Parallel}, id: id, client: client, always: map[string]bool{},
		budget: budget.NewTurn(time.Now(), budget.TurnSpec{MaxCalls: unlimited}),
	}
}

// clientOf is a client's own name.
func clientOf(r *mcpsdk.CallToolRequest) string {
	if info := r.ClientInfo(); info != nil {
		return info.Name
	}
	return ""
}

// sessionOf finds or makes the session of a request. Over HTTP clients of
// 2026-07-28 have none: all connections of one name share one.
func (s *Server) sessionOf(r *mcpsdk.CallToolRequest) *session {
	client := clientOf(r)
	stateless := r.Session.ID() == "" && r.Extra != nil && r.Extra.Header != nil
	var key any = r.Session
	if stateless {
		key = client
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.sessions[key]; found != nil {
		return found
	}
	if stateless && s.sharedSessions() >= maxShared {
		if key = ""; s.sessions[key] != nil {
			return s.sessions[key]
		}
	}
	made := s.newSession(r.Session.ID(), client)
	made.shared = stateless
	s.sessions[key] = made
	if !stateless {
		go func() {
			_ = r.Session.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.sessions, key)
		}()
	}
	return made
}

func (s *Server) sharedSessions() (n int) {
	for _, one := range s.sessions {
		if one.shared {
			n++
		}
	}
	return n
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

func (s *session) ended(r *supervisor.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.Release(time.Now())
	s.lastAt = time.Now()
	if r.Status == supervisor.StatusTimeout && !slices.Contains(s.timedOut, r.Tool) {
		s.timedOut = append(s.timedOut, r.Tool)
	}
}

// waits tells that a human is waited for, or no longer.
func (s *session) waits(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.budget.Waiting(time.Now())
		s.budget.Release(time.Now())
	} else {
		s.budget.Resumed(time.Now())
		s.budget.Again(time.Now())
	}
}

func (s *session) approved(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.always[tool]
}

func (s *session) approve(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[tool] = true
}

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
"timedOutTools":{"type":"array","items":{"type":"string"},"description":"tools whose time was over, once each"},
"toolTimeMs":{"type":"integer","description":"time in which calls ran"},
"humanWaitMs":{"type":"integer","description":"time in which a human was waited for"},
"remainingMs":{"anyOf":[{"type":"integer"},{"type":"null"}],"description":"null: there is no bound"},
"host":{"type":"object","description":"the host's load and features"}},
"required":["callCount","callsLeft","timedOutTools","toolTimeMs","humanWaitMs","remainingMs"]}`

func statusTool() *mcpsdk.Tool {
	return &mcpsdk.Tool{
		Name: turn.StatusTool, Title: "Session status", Description: "Tells how many calls this session has made, which tools have timed out, and how the host is. It changes nothing.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`), OutputSchema: json.RawMessage(statusSchema),
		Annotations: &mcpsdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	}
}

// status answers session_status.
func (s *Server) status(_ context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	one := s.sessionOf(r)
	now := time.Now()
	one.mu.Lock()
	status := sessionStatus{
		CallCount: one.budget.Calls(), TimedOutTools: append([]string{}, one.timedOut...),
		ToolTimeMs: one.budget.ToolTime(now).Milliseconds(), HumanWaitMs: one.budget.HumanWait(now).Milliseconds(),
	}
	one.mu.Unlock()
	if s.config.Health != nil {
		status.Host = s.config.Health()
	}
	result := supervisor.Verdict{CallID: newID(), Tool: turn.StatusTool, Status: supervisor.StatusOK}.Result()
	var err error
	if result.Structured, err = json.Marshal(status); err != nil {
		return nil, fmt.Errorf("bug: cannot write the status: %w", err)
	}
	return present(result, promise{made: true}, r.ProtocolVersion(), nil), nil
}
