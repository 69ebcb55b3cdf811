package turn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// observed collects what Config.Observe is told.
type observed struct {
	mu      sync.Mutex
	records []Record
}

func (o *observed) take(records []Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, records...)
}

// kinds are those of the events, and of calls their ids and traces.
func (o *observed) kinds() (list []api.EventKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.records {
		kind := r.Event.Kind
		if r.Result != nil {
			kind += api.EventKind(" " + r.Event.CallID + " " + r.TraceParent)
		}
		list = append(list, kind)
	}
	return list
}

// Whoever observes is told of all that happens, once it is shown, also of what
// the journal could not keep.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newWorld(), &observed{}
		w.config.Observe = o.take
		turn := w.begin(t, Spec{})
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			w.journal.mu.Lock()
			defer w.journal.mu.Unlock()
			w.journal.fail = errors.New("no space left on device")
		})
		call := callOf("a", "work", 3000)
		call.TraceParent = "trace"
		want(t, run(t, turn, call), "ok")
		long := callOf("b", "work", 1)
		long.TraceParent = strings.Repeat("x", maxTraceBytes+1)
		want(t, run(t, turn, long), "overloaded/journal")
		turn.End()
		kinds := []api.EventKind{
			api.EventTurnStart, api.EventQueued, api.EventStarted, api.EventFinished + " a trace",
			api.EventQueued, api.EventFailed + " b ", api.EventTurnEnd,
		}
		if got := o.kinds(); !slices.Equal(got, kinds) {
			t.Errorf("observed %q, want %q", got, kinds)
		}
		for _, r := range o.records {
			if r.Event.CallID == "a" && r.Result != nil && (!r.Asked.Equal(began) || r.Event.Time.Sub(r.Asked) != 3*time.Second) {
				t.Errorf("the call was asked for at %s, and is over at %s", r.Asked, r.Event.Time)
			}
		}
		if _, err := w.Begin(Spec{}); err == nil {
			t.Error("a turn begins without a journal")
		}
		if got := o.kinds(); len(got) != len(kinds) {
			t.Errorf("a turn that did not begin was observed: %q", got)
		}
	})
}

// The caller has its results before anybody observes them.
func TestObserverHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hold := newWorld(), make(chan struct{})
		w.config.Observe = func(records []Record) {
			if slices.ContainsFunc(records, func(r Record) bool { return r.Result != nil }) {
				<-hold
			}
		}
		turn := w.begin(t, Spec{})
		want(t, run(t, turn, callOf("a", "work", 1)), "ok")
		close(hold)
		turn.End()
	})
}

// A call's own trace context is made as it starts, from the one that it came with; its
// tool and who observes are told.
func TestTraceOfACall(t *testing.T) {
	const parent, own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000002-01"
	synctest.Test(t, func(t *testing.T) {
		for _, begin := range []func(string) string{nil, func(got string) string {
			if got != parent {
				t.Errorf("it came with %q", got)
			}
			return own
		}} {
			w, o, expected := newWorld(), &observed{}, parent
			if begin != nil {
				expected = own
			}
			w.config.Observe, w.config.Trace = o.take, begin
			var meta string
			start := w.config.Start
			w.config.Start = func(ctx context.Context, r supervisor.Request) Running {
				meta = string(r.Meta)
				return start(ctx, r)
			}
			turn := w.begin(t, Spec{})
			call := callOf("a", "work", 1)
			call.TraceParent = parent
			want(t, run(t, turn, call), "ok")
			turn.End()
			if meta != `{"traceparent":"`+expected+`"}` {
				t.Errorf("the tool has %s", meta)
			}
			for _, r := range o.records {
				if r.Result != nil && (r.TraceParent != parent || r.Trace != expected) {
					t.Errorf("observed %q and %q", r.TraceParent, r.Trace)
				}
			}
		}
	})
}
