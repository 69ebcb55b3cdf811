package httpapi

import (
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/turn"
)

// A turn that nobody wants any more is ended, but not while something is going
// on in it.
func TestIdleTurnsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.TurnIdle = time.Millisecond })
	until(t, "the end of an idle turn", func() bool {
		begun, err := w.client.Begin(w.ctx(), api.TurnSpec{})
		if err != nil {
			return client.IsNotFound(err) // it was over before it could be told of
		}
		_, err = w.client.Turn(w.ctx(), begun.TurnID)
		return client.IsNotFound(err)
	})
	until(t, "the end of all", func() bool { return len(w.turns.Active()) == 0 })
}

func TestBusyTurnsAreNotIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.TurnIdle = hangLimit }) // the test lets it expire
	busy, err := w.turns.Begin(turn.Spec{ID: "busy"})
	if err != nil {
		t.Fatal(err)
	}
	w.server.leases.begin(busy)
	a := w.server.leases.all[busy]
	a.idle.Stop()
	release, err := w.server.leases.hold(busy)
	if err != nil {
		t.Fatal(err)
	}
	w.server.leases.expire(a)
	if _, active := w.turns.Turn("busy"); !active {
		t.Error("a turn was ended in the middle of something")
	}
	release()
	w.server.leases.expire(a)
	if _, err := w.server.leases.hold(busy); !client.IsNotFound(err) {
		t.Errorf("hold after the end: %v", err)
	}
}

// A turn is in use while a child turn is active, and a request to .../model begins its hour
// anew.
func TestTurnsInUseAreNotIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.TurnIdle = hangLimit }) // the test lets it expire
	parent := w.begin(api.TurnSpec{})
	begun, _ := w.turns.Turn(parent)
	w.server.leases.mu.Lock()
	l := w.server.leases.all[begun]
	w.server.leases.mu.Unlock()
	l.idle.Stop()
	if _, err := w.client.Streaming(w.ctx(), parent, true); err != nil {
		t.Fatal(err)
	}
	until(t, "its hour begins anew", l.idle.Stop)
	child := w.begin(api.TurnSpec{ParentTurnID: parent})
	w.server.leases.expire(l)
	if _, active := w.turns.Turn(parent); !active {
		t.Fatal("a turn was ended with an active one below it")
	}
	if err := w.client.End(w.ctx(), child); err != nil {
		t.Fatal(err)
	}
	until(t, "its hour begins anew", l.idle.Stop)
	w.server.leases.expire(l)
	if _, active := w.turns.Turn(parent); active {
		t.Error("it is held by one that is over")
	}
}
