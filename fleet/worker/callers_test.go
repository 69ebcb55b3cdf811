package worker

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
)

func attemptOf(serial uint64, state start.Attempt) *attempt {
	return &attempt{id: &fleetv1.Attempt{Serial: serial}, state: state}
}

// A new life of a caller ends the calls of the one before; an old message of that, which
// comes again, does not bring it back.
func TestLivesOfACaller(t *testing.T) {
	var b lease.Beats
	c := &caller{attempts: map[uint64]*attempt{}}
	first, second := b.Send(0), b.Send(1)
	if c.hears(&b, "one", 0, 10); c.life != "" {
		t.Error("a caller without an echo has a life")
	}
	c.hears(&b, "one", first, 10)
	c.remember(attemptOf(1, start.Started))
	if c.life != "one" || c.hold.Over(9) || !c.hold.Over(10) {
		t.Errorf("%+v", c)
	}
	if ended := c.hears(&b, "two", second, 10); len(ended) != 1 || c.life != "two" || c.state(1) != start.Unseen {
		t.Errorf("%v ended, %+v", ended, c)
	}
	if ended := c.hears(&b, "one", first, 10); len(ended) != 0 || c.life != "two" || !c.twin.Over(2) {
		t.Errorf("an old life is back, or taken for one that goes on: %+v", c)
	}
	third := b.Send(3)
	if ended := c.hears(&b, "one", third, 10); len(ended) != 0 || c.life != "two" || c.twin.Over(12) || !c.twin.Over(13) {
		t.Errorf("a life that goes on beside the newest is back, or not noticed: %+v", c)
	}
	if c.hears(&b, "three", 99, 10); c.life != "two" {
		t.Error("a beat that was never sent is an echo")
	}
}

// What is remembered is bounded; what is dropped is forgotten for good, and nothing is
// dropped that may still run or be asked for.
func TestRememberedAttempts(t *testing.T) {
	c := &caller{attempts: map[uint64]*attempt{}}
	for serial := range uint64(maxAttempts) {
		state := start.Finished
		if serial == 0 {
			state = start.Started
		}
		if !c.remember(attemptOf(serial+1, state)) {
			t.Fatal("there is no room")
		}
	}
	if !c.remember(attemptOf(maxAttempts+1, start.Prepared)) || len(c.attempts) != maxAttempts+1-forgetAtOnce {
		t.Errorf("%d are remembered", len(c.attempts))
	}
	const last = 1 + forgetAtOnce // of those that are dropped
	if c.state(1) != start.Started || c.state(2) != start.Forgotten || c.state(last) != start.Forgotten || c.state(last+1) != start.Finished || c.state(maxAttempts+2) != start.Unseen {
		t.Errorf("%v %v %v %v %v", c.state(1), c.state(2), c.state(last), c.state(last+1), c.state(maxAttempts+2))
	}
	if c.remember(attemptOf(2, start.Unseen)) {
		t.Error("what is forgotten begins anew")
	}
	for serial := uint64(maxAttempts + 2); len(c.attempts) < maxAttempts; serial++ {
		c.remember(attemptOf(serial, start.Started))
	}
	for _, a := range c.attempts {
		a.state = start.Started
	}
	if c.remember(attemptOf(2*maxAttempts, start.Prepared)) {
		t.Error("one that runs is dropped")
	}
}

// What an earlier life of a caller has sent may come late, and is no forgery; what another
// key has made is one.
func TestLateMessagesAreNotForged(t *testing.T) {
	const epoch = "an epoch"
	own, first, second, stranger := newCurve(t), newCurve(t), newCurve(t), newCurve(t)
	w := &Worker{config: Config{Name: "w1", Logger: hclog.NewNullLogger()}, epoch: epoch, complaints: map[string]bool{}}
	c := &caller{key: "U1", attempts: map[uint64]*attempt{}}
	w.callers = map[string]*caller{c.key: c}
	for i, life := range []*seal.Curve{first, second} {
		c.hears(&w.beats, fmt.Sprint(i), w.beats.Send(time.Duration(i)), time.Hour)
		var err error
		if c.session, err = own.WorkerSession(life.Public(), epoch); err != nil {
			t.Fatal(err)
		}
	}
	for i, from := range []*seal.Curve{second, first, stranger} {
		s, err := from.CallerSession(own.Public(), epoch)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := s.Seal(seal.Control, &fleetv1.Control{Attempt: &fleetv1.Attempt{Caller: c.key, Worker: "w1", Life: "0", Epoch: epoch}})
		if err != nil {
			t.Fatal(err)
		}
		w.receive(&nats.Msg{Subject: link.ControlSubject("w1", c.key), Data: raw})
		if forged := from == stranger; len(w.complaints) > 0 != forged {
			t.Errorf("message %d: %v", i, w.complaints)
		}
	}
}

// What a caller calls its life is short and of one line: the worker's beats, which all callers
// hear, and the lines of its ledger repeat it.
func TestTheNameOfALife(t *testing.T) {
	key, err := seal.Create()
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{config: Config{Name: "w1", Lease: time.Hour, Logger: hclog.NewNullLogger()}, epoch: "E", curve: newCurve(t), complaints: map[string]bool{}}
	c := &caller{key: key.Public(), attempts: map[uint64]*attempt{}}
	w.callers = map[string]*caller{c.key: c}
	hear := func(life string) {
		raw, err := key.Seal(seal.Beat, &fleetv1.CallerBeat{
			Caller: c.key, Life: life, Xkey: newCurve(t).Public(), Echoes: []*fleetv1.Echo{{Worker: "w1", Epoch: "E", Beat: w.beats.Send(now())}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.hear(&nats.Msg{Subject: link.CallerBeat(c.key), Data: raw})
	}
	for i, life := range []string{"", strings.Repeat("A", 65), "A\nepoch B", "A B", "Ä"} {
		if hear(life); c.life != "" || w.refused != uint64(i+1) {
			t.Errorf("%.20q: the life is %.20q, and %d are refused", life, c.life, w.refused)
		}
	}
	good := rand.Text()
	if hear(good); c.life != good {
		t.Errorf("the life is %q", c.life)
	}
}

func newCurve(t *testing.T) *seal.Curve {
	t.Helper()
	c, err := seal.NewCurve()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUptimeGoesOn(t *testing.T) {
	a, err := sandbox.Uptime()
	if err != nil || a <= 0 || a > 100*365*24*time.Hour {
		t.Errorf("%s, %v", a, err)
	}
}

// The log has the lease in words, as other durations.
func TestALeaseInTheLog(t *testing.T) {
	var log strings.Builder
	w := &Worker{config: Config{Lease: 10 * time.Second, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, JSONFormat: true})}}
	w.endAll(&caller{attempts: map[uint64]*attempt{1: attemptOf(1, start.Started)}})
	if !strings.Contains(log.String(), `"lease":"10s"`) {
		t.Errorf("%s", log.String())
	}
}

// Who asks about a call whose result was dropped is told that it is not known any more, and not
// that it has started, after which a result would come. It takes no room for ever.
func TestADroppedResultIsForgotten(t *testing.T) {
	w, c, a := &Worker{}, &caller{attempts: map[uint64]*attempt{}}, attemptOf(1, start.Finished)
	c.remember(a)
	w.dropped(a)
	if _, say, begin := c.state(1).Next(start.Query); say != start.SayUnknown || begin {
		t.Errorf("it says %d, and begins %t", say, begin)
	}
	if !c.forget() || c.attempts[1] != nil || c.state(1) != start.Forgotten {
		t.Errorf("it is %d, among %v", c.state(1), c.attempts)
	}
}
