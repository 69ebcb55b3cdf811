package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// While calls that run finish, new ones are sent away.
func TestStopLetsCallsFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	id, file := w.begin(), filepath.Join(w.dir, "go")
	done := w.launch(id, "work", workArgs{For: file})
	d.signal(syscall.SIGTERM)
	d.waitLog("stopping")
	var refused *api.Error
	wait.Until(t, "the daemon is no longer ready", func() bool { return errors.As(w.client.Ready(t.Context()), &refused) })
	if refused.Status != 503 || refused.Remedy == "" {
		t.Errorf("not ready: %+v", refused)
	}
	if _, err := w.client.Begin(t.Context(), api.TurnSpec{}); !errors.As(err, &refused) || refused.Status != 503 {
		t.Errorf("a new turn: %v", err)
	}
	if o := w.run(id, api.Call{ID: "late", Tool: "lines"}); !errors.As(o.err, &refused) || refused.Status != 503 {
		t.Errorf("a new batch: %+v", o)
	}
	w.letGo(file)
	if o := w.outcome(done); o.err != nil || !o.result.OK() {
		t.Errorf("the call that ran: %+v", o)
	}
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Lstat(w.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// What does not finish in time is ended, and still answers.
func TestStopEndsHungCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "stop: {wait: 100ms}\nkill: {grace: 100ms}\n")
	d := w.daemon()
	id := w.begin()
	done := w.launch(id, "work", workArgs{Deaf: true})
	d.signal(syscall.SIGTERM)
	o := w.outcome(done)
	if o.err != nil || o.result.Status != api.StatusCancelled || o.result.Kill.Stage != "kill" || o.result.Content[0].Text != "begun" {
		t.Errorf("the hung call: %+v", o)
	}
	d.waitLog("waitedMs=100") // with its unit
	if code := d.code(); code != 0 || w.left() > 0 {
		t.Errorf("exit status %d, %d processes left", code, w.left())
	}
	w.daemon()
	kept, err := w.client.PastResult(t.Context(), id, "launched")
	if err != nil || kept.Status != api.StatusCancelled {
		t.Errorf("on record: %v, %+v", err, kept)
	}
}

// A second signal doesn't wait for calls, and a third not for their grace.
func TestSignalsCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "stop: {wait: 1h}\nkill: {grace: 30s}\n")
	d := w.daemon()
	done := w.launch(w.begin(), "work", workArgs{Deaf: true})
	d.signal(syscall.SIGTERM)
	d.waitLog("stopping")
	d.signal(syscall.SIGTERM)
	d.waitLog("ending calls")
	d.signal(syscall.SIGTERM)
	d.waitLog("killing calls")
	if o := w.outcome(done); o.err != nil || o.result.Status != api.StatusCancelled {
		t.Errorf("the call: %+v", o)
	}
	if code := d.code(); code != 0 || w.left() > 0 {
		t.Errorf("exit status %d, %d processes left", code, w.left())
	}
}

// A daemon that is killed leaves nothing that runs, and loses nothing that was
// on record; the next one closes what was open.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "admission: {running: 8}\n")
	d := w.daemon()
	before := w.begin()
	w.mustRun(before, "lines", map[string]string{"text": "kept"})
	if err := w.client.End(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	var open []string
	var calls []<-chan outcome
	for range 6 {
		id := w.begin()
		open, calls = append(open, id), append(calls, w.launch(id, "work", workArgs{Deaf: true}))
	}
	if w.left() < len(open) {
		t.Fatalf("%d processes run, want one for each of %d calls", w.left(), len(open))
	}
	d.signal(syscall.SIGKILL)
	d.code()
	for _, c := range calls {
		if o := w.outcome(c); o.err == nil {
			t.Errorf("a call of a dead daemon: %+v", o.result)
		}
	}
	wait.Until(t, "nothing runs any more", func() bool { return w.left() == 0 })
	again := w.daemon() // in spite of the socket and the locks that are left
	w.checkHistory(before, open)
	w.mustRun(w.begin(), "lines", map[string]string{"text": "again"})
	again.signal(syscall.SIGTERM)
	if code := again.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func (w *world) checkHistory(ended string, interrupted []string) {
	w.t.Helper()
	turns, err := w.client.PastTurns(w.t.Context(), api.Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	states := map[string]string{}
	for _, turn := range turns {
		states[turn.TurnID] = string(turn.State) + " " + string(turn.Reason)
	}
	if states[ended] != "ended " {
		w.t.Errorf("the turn that was over is %q", states[ended])
	}
	if kept, err := w.client.PastResult(w.t.Context(), ended, "c"); err != nil || kept.Content[0].Text != "kept\n" {
		w.t.Errorf("its result: %v, %+v", err, kept)
	}
	for _, id := range interrupted {
		if states[id] != "aborted error" {
			w.t.Errorf("an interrupted turn is %q", states[id])
		}
		kept, err := w.client.PastResult(w.t.Context(), id, "launched")
		if err != nil || kept.OK() || !kept.Partial || len(kept.Content) == 0 {
			w.t.Errorf("the result of an interrupted call: %v, %+v", err, kept)
		}
	}
}
