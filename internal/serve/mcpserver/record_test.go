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
