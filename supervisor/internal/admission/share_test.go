package admission

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wants is a call that waits; it says who got a slot, and gives it back when told.
type wants struct {
	got     chan string
	release chan struct{}
}

func (w wants) call(t *testing.T, g *Gate, name string, share Share) {
	go func() {
		release, err := g.Acquire(t.Context(), Ask{Share: share})
		if err != nil {
			w.got <- name + " refused: " + err.Error()
			return
		}
		w.got <- name
		<-w.release
		release()
	}()
	synctest.Wait()
}

// have fails unless these are who got slots since it was last asked.
func (w wants) have(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	var all []string
	for len(w.got) > 0 {
		all = append(all, strings.Fields(<-w.got)[0])
	}
	if is := strings.Join(all, " "); is != want {
		t.Fatalf("%q have slots, want %q", is, want)
	}
}

// With a thousand calls of one waiting, the next slot is another's.
func TestAQueueOfOneDelaysAnotherByOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 4, Queue: 2000, Wait: time.Hour})
		w := wants{make(chan string, 2000), make(chan struct{})}
		for i := range 1000 {
			w.call(t, g, fmt.Sprint("greedy ", i), Share{Key: "greedy"})
		}
		for range 4 {
			<-w.got
		}
		for round := range 3 {
			w.call(t, g, "quiet", Share{Key: "quiet"})
			if len(w.got) != 0 {
				t.Fatal("there was no slot")
			}
			w.release <- struct{}{}
			synctest.Wait()
			if next := <-w.got; next != "quiet" {
				t.Fatalf("round %d: the next slot went to %s", round, next)
			}
			w.release <- struct{}{} // any of them: the quiet one's comes to an end with the rest
			synctest.Wait()
			<-w.got
		}
		close(w.release)
		synctest.Wait()
		if running, waiting := g.Load(); running != 0 || waiting != 0 || len(g.taken) != 0 {
			t.Errorf("%d running, %d waiting, %v taken", running, waiting, g.taken)
		}
	})
}

// Where the queue is full, who has the most places makes room.
func TestAFullQueueHasRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 1, Queue: 4, Wait: time.Hour})
		w := wants{make(chan string, 20), make(chan struct{})}
		for i := range 5 {
			w.call(t, g, fmt.Sprint("greedy ", i), Share{Key: "greedy"})
		}
		<-w.got
		w.call(t, g, "greedy 5", Share{Key: "greedy"})
		if out := <-w.got; !strings.HasPrefix(out, "greedy 5 refused") {
			t.Errorf("its own sixth: %s", out)
		}
		for _, want := range []string{"greedy 4", "greedy 3"} {
			w.call(t, g, "quiet", Share{Key: "quiet"})
			if out := <-w.got; !strings.HasPrefix(out, want+" refused") {
				t.Errorf("%s, want %s", out, want)
			}
		}
		w.call(t, g, "quiet 3", Share{Key: "quiet"})
		if out := <-w.got; !strings.HasPrefix(out, "quiet 3 refused") {
			t.Errorf("with as many places: %s", out)
		}
		close(w.release)
		synctest.Wait()
	})
}

func TestQuotasOfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 4, Queue: 8, Wait: time.Minute})
		w := wants{make(chan string, 20), make(chan struct{})}
		own := Share{Key: "token ci", Running: 1, Waiting: 1}
		w.call(t, g, "1", own)
		w.call(t, g, "2", own)
		w.call(t, g, "other", Share{Key: "other"})
		if first, second := <-w.got, <-w.got; first != "1" || second != "other" {
			t.Errorf("%s and %s run", first, second)
		}
		w.call(t, g, "3", own)
		if out := <-w.got; !strings.Contains(out, "token ci has 1 call waiting, which is its quota (access: quota: waiting)") {
			t.Error(out)
		}
		if why, quota := g.busy(own); !quota {
			t.Error(why)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if out := <-w.got; !strings.Contains(out, "token ci has 1 call running, which is its quota (access: quota: running)") {
			t.Error(out)
		}
		close(w.release)
		synctest.Wait()
	})
}

// Who calls now and then finds a slot, for as long as one is left.
func TestASlotIsLeftToWhoCalledLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 4, Queue: 100, Wait: time.Minute, LeaveFor: 10 * time.Second})
		w := wants{make(chan string, 100), make(chan struct{})}
		got := func(want string) { t.Helper(); w.have(t, want) }
		for range 3 {
			w.call(t, g, "greedy", Share{Key: "greedy"})
		}
		w.call(t, g, "quiet", Share{Key: "quiet"})
		got("greedy greedy greedy quiet")
		for range 20 {
			w.call(t, g, "greedy", Share{Key: "greedy"})
		}
		for range 4 {
			w.release <- struct{}{} // all four, the quiet one's too: they wait in this order
		}
		got("greedy greedy greedy")
		time.Sleep(9 * time.Second)
		w.call(t, g, "quiet", Share{Key: "quiet"})
		got("quiet")
		if reason, quota := g.busy(Share{Key: "greedy"}); quota || reason != "4 calls are running" {
			t.Error(reason)
		}
		for range 4 {
			w.release <- struct{}{}
		}
		got("greedy greedy greedy")
		if reason, _ := g.busy(Share{Key: "greedy"}); reason != "3 calls are running, and the other slots (1) are left to those who called in the last 10s" {
			t.Error(reason)
		}
		time.Sleep(10*time.Second + 1)
		got("greedy")
		close(w.release)
		synctest.Wait()
		got(strings.TrimSpace(strings.Repeat("greedy ", 13)))
		if running, waiting := g.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d running, %d waiting", running, waiting)
		}
	})
}

// However many call now and then, three of four slots are for who calls most.
func TestAFourthOfTheSlotsIsLeftAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 8, Queue: 100, Wait: time.Minute, LeaveFor: time.Second})
		for i := range 8 {
			release, err := g.Acquire(t.Context(), Ask{Share: Share{Key: fmt.Sprint("quiet ", i)}})
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		w := wants{make(chan string, 100), make(chan struct{})}
		for range 10 {
			w.call(t, g, "greedy", Share{Key: "greedy"})
		}
		if n := len(w.got); n != 6 {
			t.Errorf("%d of 8 slots are taken, want 6", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(w.got); n != 8 {
			t.Errorf("%d of 8 slots are taken a second later", n)
		}
		close(w.release)
		synctest.Wait()
		if len(g.called) > 1 {
			t.Errorf("%d are remembered", len(g.called))
		}
	})
}

// Calls that begin and end are kept off one that begins alone, for a while and not all.
func TestALoneCallHasAHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 8, Queue: 100, Wait: time.Minute, HeadStart: time.Second})
		w := wants{make(chan string, 100), make(chan struct{})}
		for range 20 {
			w.call(t, g, "greedy", Share{Key: "greedy"})
		}
		w.have(t, strings.TrimSpace(strings.Repeat("greedy ", 8)))
		w.call(t, g, "quiet", Share{Key: "quiet"})
		w.release <- struct{}{}
		w.have(t, "quiet")
		for range 2 {
			w.release <- struct{}{}
		}
		w.have(t, "")
		w.release <- struct{}{}
		w.have(t, "greedy")
		w.call(t, g, "quiet", Share{Key: "quiet"}) // alone no more
		w.have(t, "quiet greedy")
		close(w.release)
		w.have(t, strings.TrimSpace(strings.Repeat("greedy ", 10)))
	})
}

func TestHalfOfTheSlotsAreLeftAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Running: 12, Queue: 100, Wait: time.Minute, HeadStart: time.Second})
		w := wants{make(chan string, 100), make(chan struct{})}
		for i := range 4 {
			w.call(t, g, "quiet", Share{Key: fmt.Sprint("quiet ", i)})
		}
		w.have(t, "quiet quiet quiet quiet")
		for range 10 {
			w.call(t, g, "greedy", Share{Key: "greedy"})
		}
		w.have(t, "greedy greedy")
		time.Sleep(time.Second)
		w.have(t, "greedy greedy greedy greedy greedy greedy")
		close(w.release)
		w.have(t, "greedy greedy")
	})
}

// What is full names the setting that it follows from, if that is not the host's.
func TestFullNamesItsSetting(t *testing.T) {
	t.Parallel()
	for want, limits := range map[string]Limits{
		"1 call is running":   {Running: 1},
		"2 calls are running": {Running: 2},
		"1 call is running, as many as running: 1 (toolhost.yaml:3) lets run at once (raise it to have more)": {Running: 1, Setting: "running: 1 (toolhost.yaml:3)"},
	} {
		if got := New(limits).full(); got != want {
			t.Errorf("%+v: %q", limits, got)
		}
	}
}
