package fleet

import (
	"time"

	"github.com/toolhost/toolhost/api"
)

// times are moments of a call at workers, by this caller's clock.
type times struct {
	began  time.Duration
	placed time.Duration // when the go went
	ran    time.Duration // when an event said that the tool runs; 0: none did
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
