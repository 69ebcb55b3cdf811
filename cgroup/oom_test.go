package cgroup

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeOOM is an oomSource whose counts the test sets.
type fakeOOM struct {
	mu sync.Mutex
	c  oomCounts
}

func (f *fakeOOM) descriptor() (int, uint32) { return -1, 0 }
func (f *fakeOOM) close()                    {}

func (f *fakeOOM) look() (oomCounts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.c, nil
}

func (f *fakeOOM) set(c oomCounts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c = c
}

// settle lets all of a watch's looks pass, in a synctest bubble's time.
func settle() { time.Sleep(4 * oomLastLook) }

func TestOOMRetryStopsAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeOOM{}
		fired := 0
		w := &oomWatch{source: source, fire: func() { fired++ }}
		w.noticed(true) // an ancestor's OOM, the victim not yet chosen
		synctest.Wait()
		if fired != 0 {
			t.Fatal("fired without a kill")
		}
		source.set(oomCounts{kills: 1})
		settle()
		w.noticed(true)
		if fired != 1 {
			t.Errorf("fired %d times", fired)
		}
		idleWatch := &oomWatch{source: &fakeOOM{}, fire: func() { t.Error("fired") }}
		idleWatch.noticed(true)
		settle() // ends by itself: or synctest would wait for ever
	})
}
