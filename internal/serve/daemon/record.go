package daemon

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/telemetry"
	"github.com/toolhost/toolhost/turn"
)

// recorder writes events to the journal, logs the main ones, and counts them. It may be used
// from any goroutine.
type recorder struct {
	journal   turn.Journal // nil keeps none
	logger    hclog.Logger
	telemetry *telemetry.Telemetry // nil counts nothing
	answered  func(api.Event)      // is told who has answered what; nil is nobody
	ended     atomic.Uint64        // calls
	failure   atomic.Pointer[failure]
}

// failure is the journal's latest failure.
type failure struct {
	at  time.Time
	err error
}

// Append implements turn.Journal.
func (r *recorder) Append(records ...turn.Record) error {
	if r.journal == nil {
		return nil
	}
	if err := r.journal.Append(records...); err != nil {
		if !errors.Is(err, journal.ErrTooLarge) && !errors.Is(err, journal.ErrTurnTaken) { // which are that one event's own
			r.failure.Store(&failure{time.Now(), err})
			r.countFailure()
		}
		return err // the turn logs it
	}
	if r.failure.Load() != nil {
		r.failure.Store(nil)
	}
	return nil
}

func (r *recorder) countFailure() {
	if r.telemetry != nil {
		r.telemetry.JournalFailed()
	}
}

// observe is a turn.Config's.
func (r *recorder) observe(records []turn.Record) {
	for _, one := range records {
		r.log(one)
	}
	if r.telemetry != nil {
		r.telemetry.Observe(records)
	}
}

// unreadyFor is how long a failure of the journal keeps new work away: only new work can
// show that the failure is over.
const unreadyFor = 5 * time.Second

// ready returns why no call can be made, if so.
func (r *recorder) ready() error {
	if f := r.failure.Load(); f != nil && time.Since(f.at) < unreadyFor {
		return f.err
	}
	return nil
}

// present returns why nothing goes on record any more, though nothing has failed yet.
func (d *daemon) present() error {
	if d.journal == nil {
		return nil
	}
	return d.journal.Present()
}

// watchJournal logs once that the journal was taken away. was is what it returned before.
func (d *daemon) watchJournal(was error) error {
	err := d.present()
	switch {
	case err != nil && was == nil:
		d.logger.Error("new calls are refused, since nothing can go on record", "error", err)
	case err == nil && was != nil:
		d.logger.Info("the journal is back where it was")
	}
	return err
}

func (r *recorder) log(one turn.Record) {
	e := one.Event
	logger := r.logger.With("turn", e.TurnID)
	switch e.Kind {
	case api.EventTurnStart:
		logger.Debug("turn begins", "agent", e.AgentID, "session", e.SessionID)
	case api.EventTurnEnd:
		logger.Debug("turn ends")
	case api.EventTurnAbort:
		logger.Info("turn aborted", "reason", e.Reason)
	case api.AuditAnswered:
		if r.answered != nil {
			r.answered(e)
		}
	case api.AuditDenied:
		logger.Info("call denied", "call", e.CallID, "tool", e.Tool, "reason", e.Reason, "decider", e.Decider)
	}
	if one.Result != nil {
		r.ended.Add(1)
		logCall(logger.With("call", e.CallID, "tool", e.Tool), one.Result)
	}
}

func logCall(logger hclog.Logger, r *api.Result) {
	if r.Timing.Clamped {
		logClamp(logger, r.Timing)
	}
	fields := []any{"status", string(r.Status), "elapsedMs", r.Timing.ElapsedMs}
	if r.Reason != "" {
		fields = append(fields, "reason", r.Reason)
	}
	if r.Status != api.StatusTimeout {
		logger.Info("call ended", fields...)
		return
	}
	fields = append(fields, "profile", r.Timing.Profile)
	if r.Timing.TimeoutMs != nil {
		fields = append(fields, "configuredMs", *r.Timing.TimeoutMs)
	}
	logger.Warn("call timed out", fields...)
}

// logClamp logs a timeout that differs from the requested one. An infinite timeout, or one
// that nobody requested, is not logged.
func logClamp(logger hclog.Logger, t api.Timing) {
	fields := []any{"profile", t.Profile, "source", t.Source, "sourceDetail", t.SourceDetail}
	for name, ms := range map[string]*int64{"requestedMs": t.RequestedTimeoutMs, "timeoutMs": t.TimeoutMs} {
		if ms != nil {
			fields = append(fields, name, *ms)
		}
	}
	logger.Warn("timeout clamped", fields...)
}
