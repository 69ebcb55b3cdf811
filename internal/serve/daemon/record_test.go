package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// failing is a journal that answers with an error.
type failing struct{ err error }

func (f *failing) Append(...turn.Record) error { return f.err }

// A journal that cannot be written keeps new work away for a while.
func TestReadyDependsOnTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &failing{err: journal.ErrFull}
		r := &recorder{journal: broken, logger: hclog.NewNullLogger()}
		one := turn.Record{Record: api.Record{Event: api.Event{TurnID: "t"}}}
		if r.ready() != nil || r.Append(one) == nil || r.ready() == nil {
			t.Errorf("ready: %v", r.ready())
		}
		time.Sleep(unreadyFor)
		if r.ready() != nil {
			t.Error("nobody may find out whether there is room again")
		}
		_ = r.Append(one)
		broken.err = nil
		if r.Append(one) != nil || r.ready() != nil {
			t.Errorf("it works again, but: %v", r.ready())
		}
		broken.err = fmt.Errorf("an event: %w", journal.ErrTooLarge)
		if r.Append(one) == nil || r.ready() != nil {
			t.Errorf("one event was too large, and: %v", r.ready())
		}
	})
}

// The log tells which call of which turn it was, and of a timeout by what.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	r := &recorder{logger: hclog.New(&hclog.LoggerOptions{Output: &out})}
	late := supervisor.Verdict{Status: api.StatusTimeout, Reason: "deadline"}.Result()
	limit := int64(1500)
	late.Timing.TimeoutMs, late.Timing.Profile, late.Timing.ElapsedMs = &limit, "tool_call", 1600
	fine := supervisor.Verdict{Status: api.StatusOK}.Result()
	r.observe([]turn.Record{
		{Record: api.Record{Event: api.Event{TurnID: "t1", CallID: "c1", Tool: "slow"}}, Result: late},
		{Record: api.Record{Event: api.Event{TurnID: "t2", CallID: "c2", Tool: "quick"}}, Result: fine},
		{Record: api.Record{Event: api.Event{TurnID: "t3", Kind: api.EventTurnAbort, Reason: "user"}}},
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || r.ended.Load() != 2 {
		t.Fatalf("%d calls ended: %q", r.ended.Load(), lines)
	}
	for i, want := range [][]string{
		{"[WARN]", "turn=t1", "call=c1", "tool=slow", "profile=tool_call", "configuredMs=1500", "elapsedMs=1600"},
		{"[INFO]", "turn=t2", "call=c2", "tool=quick", "status=ok"},
		{"turn=t3", "reason=user"},
	} {
		for _, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("no %s in %s", text, lines[i])
			}
		}
	}
}

// The id of a turn that is on record is taken, and that is nobody else's affair.
func TestTakenTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.daemon()
	ctx := wait.Context(t)
	if _, err := w.client.Begin(ctx, api.TurnSpec{TurnID: "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.End(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	_, err := w.client.Begin(ctx, api.TurnSpec{TurnID: "mine"})
	if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Status != http.StatusConflict {
		t.Errorf("the id of a turn that has ended: %v", err)
	}
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
}

// A flood of output is bounded on record, whatever the call writes.
func TestFloodOnRecord(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	w := newWorld(t, "  flood: {command: [sh, -c, \"yes 0123456789012345678901234567890123456789 | head -c 100000000\"], timeout: 1m}\n")
	w.daemon()
	result := w.mustRun(w.begin(), "flood", struct{}{})
	if result.Output.Content.SeenBytes+result.Output.Stdout.SeenBytes != 100_000_000 {
		t.Errorf("output %+v", result.Output)
	}
	var held int64
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		if info, err := os.Stat(filepath.Join(w.State, name)); err == nil {
			held += info.Size()
		}
	}
	if held > 32<<20 {
		t.Errorf("the journal has %d bytes of it", held)
	}
}

// A clamped timeout is a line of the log, one a call.
func TestClampIsLogged(t *testing.T) {
	for name, one := range map[string]struct {
		requested *int64
		clamped   bool
		want      string
	}{
		"asked":  {new(int64(7_200_000)), true, `"requestedMs":7200000`},
		"nobody": {nil, true, `"timeoutMs":55000`},
		"as is":  {new(int64(55_000)), false, ""},
	} {
		var out bytes.Buffer
		recorded := &recorder{logger: hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true})}
		r := supervisor.Verdict{Status: api.StatusOK}.Result()
		r.Timing = api.Timing{Profile: "tool_call", RequestedTimeoutMs: one.requested, TimeoutMs: new(int64(55_000)), Source: "client", Clamped: one.clamped}
		recorded.observe([]turn.Record{{Record: api.Record{Event: api.Event{CallID: "c", Tool: "x"}}, Result: r}})
		if n := strings.Count(out.String(), `"timeout clamped"`); (n == 1) != one.clamped || !strings.Contains(out.String(), one.want) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

// A daemon that cannot close the turns of the one before says where its journal is.
func TestNotRecovered(t *testing.T) {
	t.Parallel()
	const begin = "cannot close the turns that the last daemon left open in the state folder /state: "
	for err, want := range map[error]string{
		fmt.Errorf("%w: database or disk is full (13)", journal.ErrFull): begin + "no room for the journal: database or disk is full (13); make room there",
		errors.New("input/output error"):                                 begin + "input/output error",
	} {
		if got := notRecovered("/state", err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
