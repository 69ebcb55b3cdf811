package mcpserver

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// fullOnceStarted takes no records after that of a call's start.
type fullOnceStarted struct{ full atomic.Bool }

func (f *fullOnceStarted) Append(records ...turn.Record) error {
	if f.full.Load() {
		return errors.New("no space left on device")
	}
	for _, r := range records {
		if r.Event.Kind == api.EventStarted {
			f.full.Store(true)
		}
	}
	return nil
}

// What a client is told of a result that a full disk keeps off the record.
func TestUnrecordedResult(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		c := connect(t, newServer(t, setup{journal: &fullOnceStarted{}}), k, nil)
		p := params("hang", arguments{Mark: newMark()})
		p.Meta = map[string]any{"dev.toolhost/timeoutMs": 4000}
		r := invoke(t, c, p)
		if own := execution(t, r); !own.Unrecorded || own.Status != api.StatusTimeout || !strings.Contains(text(r), "[NOTE] this result is not on record") {
			t.Errorf("the model is told %q, the client %+v", text(r), own)
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
