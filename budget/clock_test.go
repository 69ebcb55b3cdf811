package budget

import (
	"testing"
	"time"
)

var admitted = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(d time.Duration) time.Time { return admitted.Add(d) }

// want checks what a Clock has next; reason "" means nothing.
func want(t *testing.T, c *Clock, reason string, d time.Duration) {
	t.Helper()
	at, got, ok := c.Next()
	if !ok {
		if reason != "" {
			t.Errorf("nothing is next, want %s after %s", reason, d)
		}
		return
	}
	if got != reason || !at.Equal(after(d)) {
		t.Errorf("next is %s after %s, want %q after %s", got, at.Sub(admitted), reason, d)
	}
}

func TestClockTimeoutAndSoftBudget(t *testing.T) {
	c := NewClock(admitted, ClockSpec{Timeout: 30 * sec})
	want(t, &c, ReasonSoft, 10*sec)
	c.Overran()
	want(t, &c, ReasonDeadline, 30*sec)
	c.Started(after(5 * sec)) // start-up counts
	want(t, &c, ReasonDeadline, 30*sec)
}

func TestClockSoftBudgetComesFirstAtTheTimeout(t *testing.T) {
	c := NewClock(admitted, ClockSpec{Timeout: 2 * sec})
	want(t, &c, ReasonSoft, 2*sec)
	if reason, ok := c.Due(after(2 * sec)); !ok || reason != ReasonSoft {
		t.Errorf("due: %q, %v", reason, ok)
	}
	c.Overran()
	want(t, &c, ReasonDeadline, 2*sec)
}

func TestClockDue(t *testing.T) {
	c := NewClock(admitted, ClockSpec{Timeout: 3 * sec, Soft: sec})
	for _, step := range []struct {
		at     time.Duration
		reason string
	}{{-sec, ""}, {0, ""}, {sec - 1, ""}, {sec, ReasonSoft}, {2 * sec, ReasonSoft}} {
		if reason, ok := c.Due(after(step.at)); reason != step.reason || ok != (step.reason != "") {
			t.Errorf("after %s: %q, %v, want %q", step.at, reason, ok, step.reason)
		}
	}
	c.Overran()
	if _, ok := c.Due(after(3*sec - 1)); ok {
		t.Error("due before the deadline")
	}
	if reason, ok := c.Due(after(hour)); !ok || reason != ReasonDeadline {
		t.Errorf("after the deadline: %q, %v", reason, ok)
	}
}

func TestClockInfinite(t *testing.T) {
	c := NewClock(admitted, ClockSpec{Timeout: Infinite})
	want(t, &c, ReasonSoft, 10*sec)
	c.Overran()
	want(t, &c, "", 0)
	if _, ok := c.Due(after(Infinite)); ok {
		t.Error("an infinite timeout came due")
	}
	if _, ok := c.Deadline(); ok || c.Remaining(after(hour)) != Infinite {
		t.Error("an infinite timeout has a deadline")
	}
}

func TestClockZeroTimeoutIsDueAtOnce(t *testing.T) {
	for _, timeout := range []time.Duration{0, -sec} {
		c := NewClock(admitted, ClockSpec{Timeout: timeout})
		c.Overran()
		want(t, &c, ReasonDeadline, 0)
	}
}

// streaming gives a clock whose soft budget is out of the way.
func streaming(timeout time.Duration, s Stream) Clock {
	c := NewClock(admitted, ClockSpec{Timeout: timeout, Stream: s})
	c.Overran()
	return c
}

func TestClockGap(t *testing.T) {
	c := streaming(hour, Stream{Gap: 5 * sec})
	want(t, &c, ReasonDeadline, hour) // start-up is not silence
	c.Started(after(2 * sec))
	want(t, &c, ReasonIdle, 7*sec)
	c.Message(after(4 * sec))
	want(t, &c, ReasonIdle, 9*sec)
	c.Heartbeat(after(8 * sec))
	want(t, &c, ReasonIdle, 13*sec)
	c.Message(after(6 * sec)) // late news brings nothing forward
	want(t, &c, ReasonIdle, 13*sec)
	c.Started(after(20 * sec)) // only the first counts
	want(t, &c, ReasonIdle, 13*sec)
}

func TestClockInitial(t *testing.T) {
	c := streaming(hour, Stream{Initial: 20 * sec, Gap: 5 * sec})
	c.Started(after(sec))
	want(t, &c, ReasonIdle, 21*sec)
	c.Heartbeat(after(10 * sec)) // no message
	want(t, &c, ReasonIdle, 21*sec)
	c.Message(after(12 * sec))
	want(t, &c, ReasonIdle, 17*sec)

	only := streaming(hour, Stream{Initial: 20 * sec})
	only.Started(after(sec))
	want(t, &only, ReasonIdle, 21*sec)
	only.Message(after(2 * sec))
	want(t, &only, ReasonDeadline, hour)
}

func TestClockTotalOnlyShortens(t *testing.T) {
	c := streaming(60*sec, Stream{Total: 20 * sec})
	want(t, &c, ReasonDeadline, 60*sec)
	c.Started(after(sec))
	want(t, &c, ReasonTotal, 21*sec)
	c.Message(after(5 * sec))
	c.Heartbeat(after(6 * sec))
	want(t, &c, ReasonTotal, 21*sec)

	long := streaming(60*sec, Stream{Total: 60 * sec})
	long.Started(admitted)
	want(t, &long, ReasonDeadline, 60*sec)
}

func TestClockStreamOffAndHuge(t *testing.T) {
	off := streaming(hour, Stream{Initial: -1, Gap: -1, Total: -1})
	off.Started(admitted)
	want(t, &off, ReasonDeadline, hour)
	huge := streaming(Infinite-1, Stream{Initial: Infinite, Gap: Infinite - 1, Total: Infinite - 1})
	huge.Started(after(hour))
	huge.Message(after(2 * hour))
	want(t, &huge, ReasonDeadline, Infinite-1)
}

func TestClockStandsStillForHumans(t *testing.T) {
	c := NewClock(admitted, ClockSpec{Timeout: 30 * sec, Stream: Stream{Gap: 8 * sec, Total: 25 * sec}})
	c.Started(admitted)
	c.Message(after(3 * sec))
	c.Paused(after(5 * sec))
	want(t, &c, "", 0)
	if _, ok := c.Due(after(hour)); ok {
		t.Error("something came due during a human wait")
	}
	if got := c.Elapsed(after(60 * sec)); got != 5*sec {
		t.Errorf("elapsed %s during the wait", got)
	}
	if got := c.HumanWait(after(60 * sec)); got != 55*sec {
		t.Errorf("human wait %s during the wait", got)
	}
	c.Resumed(after(105 * sec))
	want(t, &c, ReasonSoft, 110*sec)
	c.Overran()
	want(t, &c, ReasonIdle, 111*sec) // 3s, the gap and 100s of waiting
	c.Message(after(106 * sec))
	want(t, &c, ReasonIdle, 114*sec)
	c.Heartbeat(after(120 * sec))
	want(t, &c, ReasonTotal, 125*sec)
	if got := c.HumanWait(after(110 * sec)); got != 100*sec {
		t.Errorf("human wait %s", got)
	}
	if got := c.Elapsed(after(110 * sec)); got != 10*sec {
		t.Errorf("elapsed %s", got)
	}
	if got := c.Remaining(after(110 * sec)); got != 15*sec {
		t.Errorf("remaining %s", got)
	}
}

func TestClockOverlappingWaits(t *testing.T) {
	c := streaming(30*sec, Stream{})
	c.Resumed(after(sec)) // without a wait
	want(t, &c, ReasonDeadline, 30*sec)
	c.Paused(after(2 * sec))
	c.Paused(after(4 * sec))
	c.Resumed(after(6 * sec))
	want(t, &c, "", 0)
	c.Resumed(after(12 * sec))
	want(t, &c, ReasonDeadline, 40*sec)
	c.Paused(after(20 * sec))
	c.Resumed(after(25 * sec))
	want(t, &c, ReasonDeadline, 45*sec)
	if at, ok := c.Deadline(); !ok || !at.Equal(after(45*sec)) {
		t.Errorf("deadline %v, %v", at, ok)
	}
}

func TestClockTimesThatStepBack(t *testing.T) {
	c := streaming(30*sec, Stream{Gap: sec})
	c.Paused(after(10 * sec))
	c.Resumed(after(5 * sec))
	want(t, &c, ReasonDeadline, 30*sec)
	c.Paused(after(12 * sec))
	c.Resumed(after(14 * sec))
	c.Started(time.Time{})
	want(t, &c, ReasonIdle, 3*sec)
	if got := c.Elapsed(time.Time{}); got != 0 {
		t.Errorf("elapsed %s before admission", got)
	}
}

func TestClockCopiesAreIndependent(t *testing.T) {
	c := streaming(hour, Stream{Gap: sec})
	c.Started(admitted)
	d := c
	d.Message(after(sec))
	want(t, &c, ReasonIdle, sec)
	want(t, &d, ReasonIdle, 2*sec)
}

// Any sequence of happenings leaves the clock's promises standing.
func FuzzClock(f *testing.F) {
	f.Add(int64(30e9), int64(0), int64(0), int64(5e9), int64(0), []byte{0, 1, 2, 3, 4, 5})
	f.Add(int64(Infinite), int64(Infinite), int64(Infinite), int64(1), int64(-1), []byte{3, 3, 4, 1, 4, 4})
	f.Fuzz(func(t *testing.T, timeout, soft, initial, gap, total int64, events []byte) {
		c := NewClock(admitted, ClockSpec{
			Timeout: time.Duration(timeout), Soft: time.Duration(soft),
			Stream: Stream{Initial: time.Duration(initial), Gap: time.Duration(gap), Total: time.Duration(total)},
		})
		now := admitted
		for _, e := range events {
			now = now.Add(time.Duration(e) * 100 * ms)
			happen := []func(time.Time){c.Started, c.Message, c.Heartbeat, c.Paused, c.Resumed, func(time.Time) { c.Overran() }}
			happen[int(e)%len(happen)](now)
			checkClock(t, &c, now)
		}
	})
}

func checkClock(t *testing.T, c *Clock, now time.Time) {
	t.Helper()
	if got := c.Elapsed(now) + c.HumanWait(now); got != now.Sub(admitted) {
		t.Fatalf("running time and human waits are %s of %s", got, now.Sub(admitted))
	}
	at, reason, ok := c.Next()
	if end, bounded := c.Deadline(); bounded && (!ok || at.After(end)) {
		t.Fatalf("next is %s at %s, after the deadline %s", reason, at, end)
	}
	due, isDue := c.Due(now)
	if isDue != (ok && !now.Before(at)) || isDue && due != reason {
		t.Fatalf("due %q %v; next %q at %s, now %s", due, isDue, reason, at, now)
	}
}
