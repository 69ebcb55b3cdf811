package mcpserver

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// fullLater takes records until it is full.
type fullLater struct{ full atomic.Bool }

func (f *fullLater) Append(...turn.Record) error {
	if f.full.Load() {
		return errors.New("no space left on device")
	}
	return nil
}

// What a client is told of a result that a full disk keeps off the record.
func TestUnrecordedResult(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		journal := &fullLater{}
		c := connect(t, newServer(t, setup{journal: journal}), k, nil)
		mark := newMark()
		p := params("hang", arguments{Mark: mark})
		p.Meta = map[string]any{"dev.toolhost/timeoutMs": 4000}
		done := make(chan *api.Result, 1)
		go func() {
			r, err := c.CallTool(wait.Context(t), p)
			if err != nil {
				t.Error(err)
				done <- &api.Result{}
				return
			}
			own := execution(t, r)
			if !strings.Contains(text(r), "[NOTE] this result is not on record") {
				t.Errorf("the model is told %q", text(r))
			}
			done <- &own
		}()
		waitAlive(t, mark)
		journal.full.Store(true)
		if own := <-done; !own.Unrecorded || own.Status != api.StatusTimeout {
			t.Errorf("%+v", own)
		}
	})
}

// noEnds takes all records but those of calls that have ended.
type noEnds struct{}

func (noEnds) Append(records ...turn.Record) error {
	for _, r := range records {
		if r.Result != nil {
			return errors.New("no space left on device")
		}
	}
	return nil
}

// The answer that was made while a result was put on record is not given if that failed.
func TestUnrecordedSuccess(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		c := connect(t, newServer(t, setup{journal: noEnds{}}), k, nil)
		r := invoke(t, c, params("say", arguments{Text: "hello"}))
		if own := execution(t, r); !own.Unrecorded || own.Status != api.StatusOK || !strings.Contains(text(r), "[NOTE] this result is not on record") {
			t.Errorf("the model is told %q, the client %+v", text(r), own)
		}
	})
}
