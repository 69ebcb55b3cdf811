package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/turn"
)

// begin begins a turn, and stays with it to its end if the client wants a
// stream.
func (s *Server) begin(q *request) error {
	var spec api.TurnSpec
	if err := q.decode(&spec); err != nil {
		return err
	}
	free := func() {}
	if q.wantsStream() {
		var err error
		if free, err = s.streams.take(q.who); err != nil {
			return err
		}
	}
	defer free()
	t, err := s.beginFor(q, spec, false)
	if err != nil {
		return err
	}
	s.leases.begin(t)
	if q.wantsStream() {
		s.accompany(q, t)
		return nil
	}
	info, ok := t.Info()
	if !ok {
		return notActive(t.ID())
	}
	q.w.Header().Set("Location", "/api/turns/"+t.ID())
	return q.answer(wireTurn(info))
}

// beginFor begins a turn for who asks, a call or a client. One that is single has one
// batch, and ends with it.
func (s *Server) beginFor(q *request, spec api.TurnSpec, single bool) (*turn.Turn, error) {
	own := childrenOf(q.r.Context())
	if err := own.place(&spec); err != nil {
		return nil, err
	}
	t, err := s.beginTurn(q, spec, single)
	if err != nil {
		return nil, err
	}
	if err := own.add(t); err != nil {
		t.End()
		return nil, err
	}
	return t, nil
}

func (s *Server) beginTurn(q *request, spec api.TurnSpec, single bool) (*turn.Turn, error) {
	if err := s.accepts(); err != nil {
		return nil, err
	}
	own := turn.Spec{Single: single, ID: q.own(spec.TurnID), AgentID: spec.AgentID, SessionID: spec.SessionID, Headless: spec.Headless, Owner: q.who.Name}
	var parent *turn.Turn
	if spec.ParentTurnID != "" {
		var err error
		if parent, err = s.turnOf(q, spec.ParentTurnID); err != nil {
			return nil, err
		}
		own.ParentID = parent.ID()
	}
	b := s.budget(spec)
	if err := leavesTime(b); err != nil {
		return nil, err
	}
	waits, err := waitsOf(spec)
	if err != nil {
		return nil, err
	}
	own.Budget, own.Waits = b, waits
	s.config.Claim(q.who.Identity, &own)
	t, err := s.config.Turns.Begin(own)
	if err != nil {
		return nil, notBegun(spec, err)
	}
	if parent != nil {
		s.leases.holdFor(parent, t)
	}
	return t, nil
}

// notBegun returns the error of a turn that did not begin.
func notBegun(spec api.TurnSpec, err error) error {
	switch {
	case errors.Is(err, turn.ErrActive):
		return refuse(codeConflict, "the turn "+spec.TurnID+" is active already", "give another id, or none")
	case errors.Is(err, turn.ErrTooMany), errors.Is(err, turn.ErrNoRoom):
		return refuse(codeQuota, printableUpTo(err.Error(), maxRuleRunes), "end some, and begin it then")
	case errors.Is(err, turn.ErrTooDeep):
		return refuse(codeConflict, printable(err.Error()), "do it in this turn")
	case errors.Is(err, turn.ErrParentOver):
		return refuse(codeConflict, printable(err.Error()), "begin it without a parent")
	case errors.Is(err, journal.ErrTurnTaken):
		return refuse(codeConflict, "a turn "+spec.TurnID+" is on record", "give another id, or none")
	}
	return refuse(codeUnready, printable(err.Error()), "ask again later")
}

// budget is the operator's with what the client asks for on top.
func (s *Server) budget(spec api.TurnSpec) (b budget.TurnSpec) {
	if s.config.Budget != nil {
		b = s.config.Budget()
	}
	b.MaxCalls = cmp.Or(spec.MaxCalls, b.MaxCalls)
	b.ToolTime = cmp.Or(milliseconds(spec.ToolTimeMs), b.ToolTime)
	b.Deadline = cmp.Or(milliseconds(spec.DeadlineMs), b.Deadline)
	b.StreamDuration = cmp.Or(milliseconds(spec.StreamDurationMs), b.StreamDuration)
	b.Reserve = cmp.Or(milliseconds(spec.ReserveMs), b.Reserve)
	return b
}

// waitsOf are how long a client wants humans to be waited for.
func waitsOf(spec api.TurnSpec) (map[api.InteractionKind]time.Duration, error) {
	waits := map[api.InteractionKind]time.Duration{}
	for name, ms := range spec.InteractionTimeoutsMs {
		kind, wait := api.InteractionKind(name), milliseconds(ms)
		if _, _, err := turn.WaitFor(kind, wait); err != nil {
			return nil, refuse(codeInvalid, "interactionTimeoutsMs: "+printable(err.Error()), "give an object with milliseconds, at most 3600000, for any of approval, confirm, password, device_code, questionnaire and escalation")
		}
		waits[kind] = wait
	}
	return waits, nil
}

// leavesTime refuses a deadline that is all reserve, or leaves less than any call is
// begun for.
func leavesTime(b budget.TurnSpec) error {
	reserve := cmp.Or(b.Reserve, budget.DefaultReserve)
	if b.Deadline <= 0 || b.Deadline-budget.MinCall >= reserve {
		return nil
	}
	remedy := "give more, or a smaller reserveMs"
	if b.Reserve == 0 {
		remedy = fmt.Sprintf("give more, or a reserveMs that is smaller than the default of %d", reserve.Milliseconds())
	}
	return refuse(codeInvalid,
		fmt.Sprintf("deadlineMs %d leaves no time for calls: %d of it are kept for the model's last answer", b.Deadline.Milliseconds(), reserve.Milliseconds()),
		remedy)
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// accepts refuses new work of a daemon that is about to end, or not able to.
func (s *Server) accepts() error {
	if s.draining.Load() {
		return refuse(codeUnready, "the daemon is about to end", "ask again when it is back")
	}
	if s.config.Ready == nil {
		return nil
	}
	err := s.config.Ready()
	if failure, ok := errors.AsType[*api.Error](err); ok {
		return refuse(codeUnready, printable(failure.Message), failure.Remedy)
	}
	if err != nil {
		return refuse(codeUnready, printable(err.Error()), "see toolhost doctor")
	}
	return nil
}

// accompany streams a turn to the client that opened it. When the stream ends
// the turn is aborted: nobody is left to want its results.
func (s *Server) accompany(q *request, t *turn.Turn) {
	defer t.End()
	if release, err := s.leases.hold(t); err == nil { // else it is over, which is told
		defer release()
	}
	ctx, stop := s.watching(q)
	defer stop()
	st := s.newStream(q)
	defer st.close()
	if st.send() != nil || st.follow(ctx, t, 0) != nil {
		t.Abort(api.ReasonDisconnect)
	}
}

func (s *Server) active(q *request) error {
	turns := func(yield func(api.Turn) bool) {
		for _, info := range s.config.Turns.Active() {
			if q.who.Sees(info.Owner) && !yield(wireTurn(info)) {
				return
			}
		}
	}
	var rest map[string]any
	if s.config.Prestarted != nil && q.who.UsesAll() {
		if waiting := s.config.Prestarted(); len(waiting) > 0 {
			rest = map[string]any{"prestarted": waiting}
		}
	}
	return answerList(q, "turns", turns, rest)
}

func (s *Server) turn(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	info, ok := t.Info()
	if !ok {
		return notActive(t.ID())
	}
	return q.answer(wireTurn(info))
}

// model is told when the model streams, and answers with the turn as it is then.
func (s *Server) model(q *request) error {
	var m api.Model
	if err := q.decode(&m); err != nil {
		return err
	}
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	release, err := s.leases.hold(t) // a host that streams has not forgotten it
	if err != nil {
		return err
	}
	defer release()
	switch err := t.Streaming(m.Streaming); {
	case errors.Is(err, turn.ErrStreamOver):
		return refuse(codeConflict, err.Error(), "begin another turn, with more streamDurationMs if need be")
	case err != nil:
		return notActive(t.ID())
	}
	info, ok := t.Info()
	if !ok {
		return notActive(t.ID())
	}
	return q.answer(wireTurn(info))
}

func (s *Server) abort(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	s.note(q.who.on(), "turn.abort", t.ID()+" of "+t.Owner())
	t.Abort(api.ReasonUser)
	return q.answer(api.Done{OK: true, TurnID: t.ID()})
}

func (s *Server) abortCall(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	id := q.r.PathValue("callId")
	if !t.AbortCall(id) {
		return refuse(codeNotFound, "no call "+printable(id)+" of this turn is under way", "see currentTools in /api/turns/active")
	}
	s.note(q.who.on(), "call.abort", printable(id)+" of turn "+t.ID()+" of "+t.Owner())
	return q.answer(api.Done{OK: true, TurnID: t.ID(), CallID: id})
}

// end returns once everything of the turn is over.
func (s *Server) end(q *request) error {
	t, err := s.activeTurn(q)
	if err != nil {
		return err
	}
	t.End()
	return q.answer(api.Done{OK: true, TurnID: t.ID()})
}

func notActive(id string) error {
	return refuse(codeNotFound, "no turn "+printable(id)+" is active", "see /api/turns/active, and /api/history/turns for those that are over")
}
