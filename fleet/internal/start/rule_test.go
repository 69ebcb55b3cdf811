package start

import (
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// The rule holds in every world, and each way for a call to end is in some.
func TestTheRuleHolds(t *testing.T) {
	t.Parallel()
	holds(t, false)
}

func TestTheRuleHoldsWithAnImpliedGo(t *testing.T) {
	stage.Of(t, "fleet")
	t.Parallel()
	holds(t, true)
}

func holds(t *testing.T, exempt bool) {
	t.Helper()
	fault, way, worlds, ends := explore(code(), exempt)
	if fault != "" {
		t.Fatalf("%s:\n%q", fault, way)
	}
	for _, phase := range []Phase{Ended, Never, Lost} {
		if ends[phase] == 0 {
			t.Errorf("no call is %s", phase)
		}
	}
	t.Logf("%d worlds", worlds)
}

// A refusal is remembered: else the offer's copy may start what was said never to start.
func TestRefusalsAreRemembered(t *testing.T) {
	for _, exempt := range []bool{false, true} {
		r := code()
		r.refusedFresh = true
		if fault, _, worlds, _ := explore(r, exempt); fault == "" {
			t.Errorf("go with the offer %t: nothing is wrong without it in %d worlds", exempt, worlds)
		}
	}
}

// Each rule is needed: without it the tool starts twice, or is said never to have started.
func TestEachRuleIsNeeded(t *testing.T) {
	for name, change := range map[string]func(*rules){
		"start on delivery, as of a work queue": func(r *rules) {
			r.next = func(a Attempt, m Message) (Attempt, Answer, bool) {
				if a == Unseen && m == Offer {
					return Started, SayStarted, true
				}
				return a.Next(m)
			}
		},
		"never is said and not remembered": func(r *rules) {
			r.next = func(a Attempt, m Message) (Attempt, Answer, bool) {
				if a == Prepared && m == Query {
					return Prepared, SayNever, false
				}
				return a.Next(m)
			}
		},
		"what is forgotten is taken for new": func(r *rules) {
			r.next = func(a Attempt, m Message) (Attempt, Answer, bool) {
				if a == Forgotten {
					a = Unseen
				}
				return a.Next(m)
			}
		},
		"no epochs":                        func(r *rules) { r.anyLife = true },
		"no ledger before the start":       func(r *rules) { r.ledgerLate = true },
		"what is not on record is never":   func(r *rules) { r.earlier = func(_, started bool) Answer { return Earlier(true, started) } },
		"an aborted call is never started": func(r *rules) { r.stopsAtOnce = true },
		"silence after the go is never": func(r *rules) {
			r.silent = func(c *Caller, attempt int) {
				if c.Silent(attempt); c.phase == Committed && int(c.chosen) == attempt {
					c.phase = Placing
				}
			}
		},
		"a go to each that is ready": func(r *rules) {
			r.ready = func(c *Caller, attempt int) (Message, []int) {
				_, voided := c.Ready(attempt)
				return Go, voided
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := code()
			change(&r)
			fault, way, worlds, _ := explore(r, false)
			if fault == "" {
				t.Fatalf("nothing is wrong without it in %d worlds", worlds)
			}
			t.Logf("after %d worlds: %s", worlds, fault)
			if len(way) == 0 {
				t.Error("it is wrong from the beginning")
			}
		})
	}
}

// A call has a bounded number of offers, and none once it is stopped.
func TestOffersAreBounded(t *testing.T) {
	var c Caller
	for range MaxAttempts {
		attempt, ok := c.Offer(false)
		if !ok || !c.Open(attempt) {
			t.Fatal("an offer is refused")
		}
	}
	if _, ok := c.Offer(false); ok {
		t.Error("one too many")
	}
	if voided := c.Stop(); len(voided) != MaxAttempts || c.Phase() != Never {
		t.Errorf("%v, %v", voided, c.Phase())
	}
	c = Caller{}
	c.Stop()
	if _, ok := c.Offer(false); ok {
		t.Error("a stopped call is offered")
	}
}
