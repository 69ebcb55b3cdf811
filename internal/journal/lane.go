package journal

import (
	"sync"
	"time"
)

// lane has large requests be committed one at a time. Beside what other turns say a rest follows each, restFactor times
// as long as it has taken: what a turn with a thousand calls has on record costs the host as much again elsewhere.
type lane struct {
	turn chan struct{}

	mu     sync.Mutex
	last   time.Time // when a small one came
	lastOf string    // its turn
}

const (
	restFactor = 3
	// restFor is how long behind a small request large ones rest, and the longest rest.
	restFor = 250 * time.Millisecond
)

func newLane() lane { return lane{turn: make(chan struct{}, 1)} }

// begin waits for a large request's turn; end gives it on.
func (l *lane) begin(r *request) (end func()) {
	l.turn <- struct{}{}
	began := time.Now()
	return func() {
		if !l.others(r) {
			<-l.turn
			return
		}
		time.AfterFunc(min(restFactor*time.Since(began), restFor), func() { <-l.turn })
	}
}

// others says whether another turn has had something small to say of late.
func (l *lane) others(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastOf != r.turn() && time.Since(l.last) < restFor
}

// note is for small requests as they come.
func (l *lane) note(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.lastOf = time.Now(), r.turn()
}

// turn is that of its first event.
func (r *request) turn() string {
	if len(r.events) == 0 {
		return ""
	}
	return r.events[0].TurnID
}
