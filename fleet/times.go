package fleet

import (
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// times are moments of a call at workers, by this caller's clock.
type times struct {
	began  time.Duration
	placed time.Duration // when the go went
	begun  time.Duration // when the worker first said that it has started it
	ran    time.Duration // when an event said that the tool runs; 0: none did
	ended  time.Duration // when it was first aborted
	came   time.Duration // when a piece of its result last did
	// open is how many questions wait for an answer, since is when the first of them came,
	// and waited how long those waited that were answered.
	open          int
	since, waited time.Duration
	leftMs        int64 // what it may run for by the word of its host, or 0
}

// askLeft asks the host what the call may run for by now, or why it is not to be made.
func (t *times) askLeft(of func() (time.Duration, error)) error {
	if of == nil {
		return nil
	}
	left, err := of()
	if t.leftMs = 0; left < budget.Infinite {
		t.leftMs = max(left.Milliseconds(), 1)
	}
	return err
}

func (t *times) asked() {
	if t.open == 0 {
		t.since = now()
	}
	t.open++
}

// answered ends the wait for a question's answer, if it is not over.
func (t *times) answered(q *question) {
	if !q.waits {
		return
	}
	q.waits = false
	if t.open--; t.open == 0 {
		t.waited += now() - t.since
	}
}

// timing is where the time of a call went that ends now, as far as this machine knows.
func (t times) timing(to *api.Timing) {
	if t.open > 0 {
		t.waited += now() - t.since
	}
	to.QueueMs, to.ElapsedMs, to.HumanWaitMs = (t.placed - t.began).Milliseconds(), (now() - t.placed).Milliseconds(), t.waited.Milliseconds()
	if t.ran != 0 {
		to.StartMs, to.RunMs = (t.ran - t.placed).Milliseconds(), (now() - t.ran).Milliseconds()
	}
}

// marks are the moments of a call as this machine knows them; how it ended is by the
// worker's measurements, in its result, if there is one.
func (t times) marks(r *api.Result) api.Marks {
	m := api.Marks{Queued: began.Add(t.began), Admitted: began.Add(t.placed), Done: time.Now()}
	if t.ran == 0 {
		return m
	}
	m.Ready = began.Add(t.ran)
	if r != nil {
		m.Empty = m.Done.Add(-time.Duration(r.Timing.DrainMs) * time.Millisecond)
		m.Kill = m.Empty.Add(-time.Duration(r.Kill.LatencyUs) * time.Microsecond)
		m.Stop = m.Kill.Add(-time.Duration(r.Timing.GraceMs) * time.Millisecond)
	}
	return m
}
