package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/admission"
)

// Starts of a pool wait for one another, but not for one that takes its time.
func TestStartsOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, pool := newPools(admission.Limits{Queue: 9, Wait: time.Hour}), Pool{Name: "heavy", Running: 99}
		leave, err := p.enter(t.Context(), pool, Share{})
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		var all []func()
		for range cap(p.gates[pool].starting) {
			all = append(all, p.start(t.Context(), pool))
		}
		waited := func(ctx context.Context) (took time.Duration, started func()) {
			began := time.Now()
			started = p.start(ctx, pool)
			return time.Since(began), started
		}
		took, late := waited(t.Context())
		if took != startWait {
			t.Errorf("waited %s for starts that take their time", took)
		}
		time.AfterFunc(startWait/2, all[0])
		if took, all[0] = waited(t.Context()); took != startWait/2 {
			t.Errorf("waited %s for a start that was over after %s", took, startWait/2)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if took, started := waited(gone); took != 0 {
			t.Errorf("waited %s for a call that is over", took)
		} else {
			started()
		}
		for _, started := range append(all, late) {
			started()
		}
		if n := len(p.gates[pool].starting); n != 0 {
			t.Errorf("%d starts are left", n)
		}
		p.start(t.Context(), Pool{})()
	})
}
