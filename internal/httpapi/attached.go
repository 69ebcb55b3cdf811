package httpapi

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/turn"
)

// attached is what the Server keeps of an active turn.
type attached struct {
	t    *turn.Turn
	feed *feed

	mu   sync.Mutex
	busy int         // requests that keep it from being idle
	idle *time.Timer // nil for a turn that the Server has not begun
	over bool        // so is the turn, or it was idle for too long
}

// attach finds or makes it. begun says that this Server has begun the turn, and
// so has to end it if nobody else does.
func (s *Server) attach(t *turn.Turn, begun bool) *attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attached[t]
	if a == nil {
		a = &attached{t: t, feed: newFeed()}
		s.attached[t] = a
		s.feeds.Go(func() { s.follow(a) })
	}
	if begun {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.idle = time.AfterFunc(s.config.TurnIdle, func() { s.expire(a) })
	}
	return a
}

func (s *Server) follow(a *attached) {
	a.feed.pump(a.t)
	s.mu.Lock()
	delete(s.attached, a.t)
	s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.idle != nil {
		a.idle.Stop()
	}
}

// expire ends a turn that nobody seems to want any more.
func (s *Server) expire(a *attached) {
	a.mu.Lock()
	expired := a.busy == 0 && !a.over
	a.over = a.over || expired
	a.mu.Unlock()
	if expired {
		s.config.Logger.Warn("ending a turn that was idle for too long", "turn", a.t.ID(), "idleMs", s.config.TurnIdle.Milliseconds())
		a.t.End()
	}
}

// hold keeps a turn from being idle until release is called.
func (s *Server) hold(a *attached) (release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, notActive(a.t.ID())
	}
	a.busy++
	if a.idle != nil {
		a.idle.Stop()
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy--
		if a.idle != nil && a.busy == 0 && !a.over {
			a.idle.Reset(s.config.TurnIdle)
		}
	}, nil
}

// activeTurn finds the turn that a path names.
func (s *Server) activeTurn(q *request) (*turn.Turn, error) {
	id := q.r.PathValue("turnId")
	t, ok := s.config.Turns.Turn(id)
	if !ok {
		return nil, notActive(id)
	}
	return t, nil
}

func notActive(id string) error {
	return refuse(codeNotFound, "no turn "+printable(id)+" is active", "see /api/turns/active, and /api/history/turns for those that are over")
}

// wireTurn is a turn as the API shows it.
func wireTurn(i turn.Info) client.Turn {
	w := client.Turn{
		TurnID: i.TurnID, AgentID: i.AgentID, SessionID: i.SessionID, ParentTurnID: i.ParentID, StartedAt: i.StartedAt,
		CurrentTools: []client.CurrentTool{}, ToolCallCount: i.ToolCallCount, TimedOutTools: i.TimedOutTools,
		PendingInteractions: []client.Interaction{},
	}
	for _, c := range i.CurrentTools {
		w.CurrentTools = append(w.CurrentTools, client.CurrentTool{
			CallID: c.CallID, Tool: c.Tool, State: c.State, StartedAt: c.StartedAt, TimeoutMs: c.TimeoutMs,
			HumanWaitMs: c.HumanWaitMs, Usage: usageOf(c.Running),
		})
	}
	for _, p := range i.PendingInteractions {
		w.PendingInteractions = append(w.PendingInteractions, wireInteraction(p))
	}
	return w
}

// usageOf asks a call what it uses; one of the supervisor's knows.
func usageOf(c turn.Running) *client.Usage {
	call, ok := c.(interface {
		Current() (cgroup.Current, bool)
	})
	if !ok {
		return nil
	}
	now, ok := call.Current()
	if !ok {
		return nil
	}
	return &client.Usage{CPUMs: now.CPU.Milliseconds(), MemoryBytes: now.MemoryBytes, Pids: now.Pids}
}

func wireInteraction(i turn.Interaction) client.Interaction {
	w := client.Interaction{
		ID: i.ID, TurnID: i.TurnID, CallID: i.CallID, Tool: i.Tool, Kind: string(i.Kind), Prompt: i.Prompt, Schema: i.Schema, Default: i.Default,
		Arguments: i.Arguments, TimeoutMs: i.TimeoutMs, ExpiresAt: i.ExpiresAt, Secret: i.Secret,
	}
	if p := i.Policy; p != nil {
		w.Policy = &client.Policy{
			Tier: p.Tier, Network: p.Network, Read: append([]string{}, p.Read...), Write: append([]string{}, p.Write...),
		}
		orElse(&w.Policy.Tier, "native")
		orElse(&w.Policy.Network, "none")
	}
	return w
}
