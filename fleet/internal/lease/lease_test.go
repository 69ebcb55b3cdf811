package lease

import (
	"fmt"
	"testing"
	"time"
)

func TestOnlyARoundTripRenews(t *testing.T) {
	var b Beats
	var h Hold
	if !h.Over(0) {
		t.Error("a lease without an echo holds")
	}
	first := b.Send(5)
	b.Send(8)
	h.Renew(&b, 3, 10)
	h.Renew(&b, 0, 10)
	if h.Until() != 0 {
		t.Errorf("what was never sent renews until %d", h.Until())
	}
	h.Renew(&b, 2, 10)
	h.Renew(&b, first, 10) // it was overtaken
	if h.Until() != 18 || h.Over(17) || !h.Over(18) {
		t.Errorf("until %d", h.Until())
	}
	for range kept {
		b.Send(20)
	}
	if _, ok := b.SentAt(2); ok {
		t.Error("an old beat is known for ever")
	}
	if at, ok := b.SentAt(3); !ok || at != 20 {
		t.Errorf("the oldest of those kept: %d, %v", at, ok)
	}
}

// However often beats are sent, one is known for longer than the longest lease, and counts from
// no later than when it was sent.
func TestManyBeatsAreKnown(t *testing.T) {
	b := Beats{Apart: Apart}
	const every = time.Millisecond
	for n := range uint64(time.Minute / every) {
		b.Send(time.Duration(n) * every)
	}
	for n := uint64(1); n <= b.sent; n++ {
		sent := time.Duration(n-1) * every
		if at, ok := b.SentAt(n); !ok || at > sent || at < sent-Apart {
			t.Fatalf("beat %d was sent at %s: %s, %t", n, sent, at, ok)
		}
	}
}

func TestWatch(t *testing.T) {
	var w Watch
	if w.Echo() != 0 || w.Ended(10, 2) != 0 || w.Silent(3, 7) != 4 {
		t.Error("a worker that was never heard has a lease")
	}
	w.Heard(2, 5)
	w.Heard(1, 9)
	if w.Ended(10, 2) != 0 || w.Silent(0, 9) != 4 {
		t.Error("what was not echoed has a lease")
	}
	if w.Echo() != 2 || w.Ended(10, 2) != 17 {
		t.Errorf("ended by %d", w.Ended(10, 2))
	}
	w.Heard(3, 11)
	if w.Ended(10, 2) != 17 || w.Echo() != 3 || w.Ended(10, 2) != 23 {
		t.Errorf("ended by %d", w.Ended(10, 2))
	}
}

// The model: time goes in ticks. A worker beats at each tick that it runs in, a caller
// echoes at each; each message takes any time, or never comes. The worker may be stopped
// for good or for a while, or its whole machine sleep for a while. The caller stops
// listening at any tick.
const (
	ticks      = 11
	modelLease = 3
	modelStop  = 3
)

type rules struct {
	timer      bool // something beside the worker ends its calls when their lease is over
	fromComing bool // mutant: a lease runs from when the echo came
	anyBeat    bool // mutant: a caller's beat renews, whatever it echoes
	noStop     bool // mutant: the caller does not wait for the ladder
	jumps      bool // mutant: the clock does not count the machine's sleep
}

// weather is how one run goes: what happens to the worker, how late messages of each
// direction are (never, from a tick on), and when the caller gives up.
type weather struct {
	stopAt, stopFor   int // of the worker's process
	sleepAt, sleepFor int // of its machine
	beatLate, echoLate,
	cutBeats, cutEchoes int
}

// run plays one weather, and says when a call ran that the caller was certain had ended.
func (r rules) run(w weather) (fault string) {
	var beats Beats
	var hold Hold
	var watch Watch
	toCaller, toWorker := map[int][]uint64{}, map[int][]uint64{}
	running, ending, armed := true, -1, time.Duration(modelLease)
	beats.Send(0)
	hold.Renew(&beats, 1, modelLease) // the call began with a lease
	watch.Heard(1, 0)
	watch.Echo()
	slept := 0
	for now := 1; now < ticks; now++ {
		asleep := now >= w.sleepAt && now < w.sleepAt+w.sleepFor
		stopped := asleep || now >= w.stopAt && now < w.stopAt+w.stopFor
		if asleep {
			slept++
		}
		clock := time.Duration(now)
		if r.jumps {
			clock -= time.Duration(slept)
		}
		if !asleep && running && ending < 0 && r.timer && clock >= armed {
			ending = now + modelStop - 1
		}
		if !stopped {
			for at := range now + 1 { // what has come by now
				for _, n := range toWorker[at] {
					r.renew(&hold, &beats, n, clock)
				}
				delete(toWorker, at)
			}
			armed = max(armed, hold.Until())
			if running && ending < 0 && hold.Over(clock) {
				ending = now + modelStop - 1
			}
			if n := beats.Send(clock); now < w.cutBeats {
				toCaller[now+w.beatLate] = append(toCaller[now+w.beatLate], n)
			}
		}
		if ending >= 0 && now >= ending && !asleep {
			running = false
		}
		for _, n := range toCaller[now] {
			watch.Heard(n, time.Duration(now))
		}
		stop := time.Duration(modelStop)
		if r.noStop {
			stop = 0
		}
		// A machine that slept ends its calls when it wakes.
		waking := w.sleepFor > 0 && now >= w.sleepAt && now < w.sleepAt+w.sleepFor+modelStop
		if certain := time.Duration(now) > watch.Ended(modelLease, stop); certain && running && !waking {
			return fmt.Sprintf("at %d it runs, and the caller is certain that it has ended since %d", now, watch.Ended(modelLease, stop))
		}
		if n := watch.Echo(); now < w.cutEchoes {
			toWorker[now+1+w.echoLate] = append(toWorker[now+1+w.echoLate], n)
		}
	}
	return ""
}

func (r rules) renew(h *Hold, b *Beats, n uint64, now time.Duration) {
	switch {
	case r.fromComing:
		h.until = max(h.until, now+modelLease)
	case r.anyBeat:
		h.Renew(b, b.sent, modelLease)
	default:
		h.Renew(b, n, modelLease)
	}
}

// explore plays every weather.
func (r rules) explore(stops, sleeps bool) (fault string, runs int) {
	most := func(on bool) int {
		if on {
			return ticks
		}
		return 1
	}
	for stopAt := range most(stops) {
		for stopFor := range most(stops) {
			for sleepAt := range most(sleeps) {
				for sleepFor := range most(sleeps) {
					for late := range 9 {
						for cut := range (ticks + 1) * (ticks + 1) {
							runs++
							w := weather{stopAt, stopFor, sleepAt, sleepFor, late % 3, late / 3, cut % (ticks + 1), cut / (ticks + 1)}
							if fault := r.run(w); fault != "" {
								return fmt.Sprintf("%+v: %s", w, fault), runs
							}
						}
					}
				}
			}
		}
	}
	return "", runs
}

func TestWhatIsSaidToHaveEndedHas(t *testing.T) {
	for _, c := range []struct {
		name          string
		rules         rules
		stops, sleeps bool
		holds         bool
	}{
		{"one-way loss and late beats", rules{}, false, false, true},
		{"a stopped worker, with a timer beside it", rules{timer: true}, true, false, true},
		{"a machine that sleeps, with a clock that counts it", rules{timer: true}, false, true, true},
		{"a machine that sleeps, with a clock that stands still", rules{timer: true, jumps: true}, false, true, false},
		{"a stopped worker alone", rules{}, true, false, false},
		{"a lease from the echo's coming", rules{fromComing: true}, false, false, false},
		{"a lease renewed by any beat", rules{anyBeat: true}, false, false, false},
		{"a ladder that takes no time", rules{noStop: true}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fault, runs := c.rules.explore(c.stops, c.sleeps)
			if (fault == "") != c.holds {
				t.Errorf("holds %v after %d runs: %s", fault == "", runs, fault)
			}
			t.Logf("%d runs: %s", runs, fault)
		})
	}
}
