package logview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
)

// Remote is a daemon's record, for users who may not read its journals.
func Remote(c *client.Client) Source { return remote{c} }

type remote struct{ *client.Client }

func (r remote) Turns(f api.Filter) ([]api.TurnSummary, error) {
	return r.PastTurns(context.Background(), f)
}

func (r remote) Events(turnID string, after int64, yield func(journal.Event) bool) error {
	return r.Replay(context.Background(), turnID, after, func(e api.Record) bool { return yield(asJournalled(e)) })
}

func (r remote) Result(turnID, callID string) ([]byte, error) {
	result, err := r.PastResult(context.Background(), turnID, callID)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	err = present.JSON(&raw, result, false)
	return bytes.TrimSpace(raw.Bytes()), err
}

// asJournalled is an event as the journal has it; of a gap only its kind is
// known.
func asJournalled(e api.Record) journal.Event {
	if e.Gap != nil {
		e.Time = time.Now()
	}
	return journal.Event{Seq: e.Seq, Time: e.Time, TurnID: e.TurnID, Kind: e.Kind, CallID: e.CallID, Tool: e.Tool, JSON: present.EventJSON(e)}
}

// Follow goes on with one turn to its end or, where none is named, with all that
// there are and will be. The order of events is that of each turn.
func (r remote) Follow(ctx context.Context, o journal.FollowOptions, yield func(journal.Event) bool) error {
	if o.TurnID != "" {
		return r.Watch(ctx, o.TurnID, 0, func(e api.Record) bool { return yield(asJournalled(e)) })
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f := &follower{remote: r, yield: yield, cancel: cancel, known: map[string]bool{}}
	defer f.watching.Wait()
	defer cancel(nil)
	return f.run(ctx)
}

// follower watches turns side by side.
type follower struct {
	remote
	cancel   context.CancelCauseFunc
	watching sync.WaitGroup
	known    map[string]bool // turns of the last look

	mu    sync.Mutex
	yield func(journal.Event) bool
}

// How often new turns are looked for, and how many of them at a time: what
// begins and ends between two looks is on record. A turn may come on record a
// little later than one that began after it.
const (
	lookEvery   = 500 * time.Millisecond
	lookBack    = 10 * time.Second
	maxNewTurns = 1000
)

func (f *follower) run(ctx context.Context) error {
	turns, err := f.PastTurns(ctx, api.Filter{Limit: maxNewTurns})
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.State == api.TurnOpen { // of which only what is new
			f.follow(ctx, t.TurnID, t.Events)
		}
	}
	since := f.knows(turns, time.Time{})
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		turns, err := f.PastTurns(ctx, api.Filter{Since: since, Limit: maxNewTurns})
		if _, refused := errors.AsType[*api.Error](err); refused {
			return err
		}
		if err != nil {
			continue // a daemon that is not there is waited for
		}
		for _, t := range turns {
			if !f.known[t.TurnID] {
				f.follow(ctx, t.TurnID, 0)
			}
		}
		since = f.knows(turns, since)
	}
}

// knows notes the turns of a look, and gives the time from which the next one has
// to look.
func (f *follower) knows(turns []api.TurnSummary, since time.Time) time.Time {
	clear(f.known) // those before since are not listed again
	for _, t := range turns {
		f.known[t.TurnID] = true
		if at := t.Started.Add(-lookBack); since.Before(at) {
			since = at
		}
	}
	return since
}

// follow shows a turn from an event on. Where the daemon is not there or has no stream for it,
// or the client has as many as it may, that is waited for. Any other refusal ends it all, but
// that a turn is gone.
func (f *follower) follow(ctx context.Context, turnID string, after int64) {
	show := func(e api.Record) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if ctx.Err() != nil || !f.yield(asJournalled(e)) {
			f.cancel(nil)
			return false
		}
		after = e.Seq
		return true
	}
	f.watching.Go(func() {
		for {
			err := f.Watch(ctx, turnID, after, show)
			refused, is := errors.AsType[*api.Error](err)
			switch {
			case err == nil || client.IsNotFound(err):
				return
			case is && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusServiceUnavailable:
				f.cancel(fmt.Errorf("turn %s: %w", turnID, err)) // or it would look whole
				return
			}
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return
			}
		}
	})
}
