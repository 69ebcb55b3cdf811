package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Errors of Run.
var (
	errOver = errors.New("the turn is over: begin another one")
	errBusy = errors.New("the turn runs another batch: wait for its results")
)

const (
	// maxBatch bounds the calls of one batch.
	maxBatch = 10_000
	// maxIDBytes bounds the id of a call, maxNameBytes what is shown of a
	// tool's name.
	maxIDBytes, maxNameBytes = 128, 128
)

// Run runs a batch of calls and returns exactly one result for each, in call order; none is
// nil. An error means that no call ran: the turn is over or runs another batch, there are
// too many calls, or their IDs are invalid or not unique. If ctx ends, the turn is aborted
// and Run still returns the results. The reason is disconnect if ctx's cause is
// [ErrDisconnected], timeout if it is context.DeadlineExceeded, else user.
func (t *Turn) Run(ctx context.Context, calls []Call) ([]*api.Result, error) {
	results, err := t.RunBatch(ctx, calls)
	if err != nil {
		return nil, err
	}
	defer results.Close()
	return slices.AppendSeq(make([]*api.Result, 0, len(calls)), results.All()), nil
}

// RunBatch is like Run, for many or large results: results that exceed the bound on memory
// are read from the journal one by one. The caller must Close the Results.
func (t *Turn) RunBatch(ctx context.Context, calls []Call) (*Results, error) {
	if err := CheckBatch(calls); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // then nothing of it begins
		t.AbortOnce(supervisor.ReasonOf(ctx))
	}
	b := &batch{t: t, done: make(chan struct{})}
	err := errOver
	t.do(func() { err = t.begin(b, calls) })
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { t.AbortOnce(supervisor.ReasonOf(ctx)) })
	defer stop()
	<-b.done
	return b.results(), nil
}

// ErrDisconnected, as the cause of a context, says that the client disconnected.
var ErrDisconnected error = supervisor.AbortCause(api.ReasonDisconnect)

// CheckBatch returns Run's error for calls that are too many, or whose IDs are invalid or not
// unique.
func CheckBatch(calls []Call) error {
	if len(calls) > maxBatch {
		return fmt.Errorf("a batch of %d calls is too large: at most %d are possible", len(calls), maxBatch)
	}
	seen := map[string]bool{}
	for i, call := range calls {
		if call.ID == "" || len(call.ID) > maxIDBytes {
			return fmt.Errorf("call %d of the batch has an id of %d bytes: give it one of 1 to %d", i+1, len(call.ID), maxIDBytes)
		}
		if !utf8.ValidString(call.ID) {
			return fmt.Errorf("call %d of the batch has the id %q, which is not UTF-8: give it another", i+1, call.ID)
		}
		if seen[call.ID] {
			return fmt.Errorf("two calls have the id %q: give each call a unique id", call.ID)
		}
		seen[call.ID] = true
	}
	return nil
}

func (t *Turn) begin(b *batch, calls []Call) error {
	if t.batch != nil {
		return errBusy
	}
	t.batch = b
	t.busy(true)
	b.begin(calls)
	return nil
}
