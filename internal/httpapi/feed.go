package httpapi

import (
	"slices"
	"sync"

	"github.com/toolhost/toolhost/turn"
)

// event is one of a turn, as it is shown.
type event struct {
	seq  int64
	kind string
	json []byte
}

const (
	// maxFeed and maxFeedBytes bound what a feed holds for readers that lag;
	// older events are in the journal.
	maxFeed      = 4096
	maxFeedBytes = 8 << 20
	// feedPage is how many events a reader is given at once, and feedPageBytes how
	// many bytes of them, but for one that is larger by itself: a reader that takes
	// nothing holds a copy.
	feedPage      = 128
	feedPageBytes = 64 << 10
)

// feed holds a turn's events for any number of readers, each of which knows by
// itself how far it is. A reader costs the feed nothing.
type feed struct {
	mu      sync.Mutex
	events  []event // without gaps
	bytes   int     // of their JSON
	last    int64
	over    bool
	changed chan struct{} // closed and replaced by every change
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

func (f *feed) add(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.seq != f.last+1 {
		f.events, f.bytes = nil, 0 // the readers see a gap
	}
	f.events = append(f.events, e)
	f.bytes += len(e.json)
	f.last = e.seq
	f.forget()
	f.tell()
}

// forget drops the oldest events when there are too many, some at a time.
func (f *feed) forget() {
	old := 0
	for n := len(f.events); n-old > 1 && (n-old > maxFeed || f.bytes > maxFeedBytes || old > 0 && old < n/4); old++ {
		f.bytes -= len(f.events[old].json)
	}
	if old > 0 {
		f.events = append(f.events[:0:0], f.events[old:]...)
	}
}

func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.tell()
}

func (f *feed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// page is what a reader finds behind the event that it has seen last.
type page struct {
	events []event
	// first is the oldest event that the feed holds, last the newest of all.
	first, last int64
	over        bool            // there will be no more than last
	changed     <-chan struct{} // closed when there is more to see
}

func (f *feed) after(seq int64) page {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := page{first: f.last - int64(len(f.events)) + 1, last: f.last, over: f.over, changed: f.changed}
	if seq+1 >= p.first && seq < f.last {
		p.events = slices.Clone(pageOf(f.events[seq+1-p.first:]))
	}
	return p
}

// pageOf is how much of the events a reader is given at once.
func pageOf(events []event) []event {
	events = events[:min(len(events), feedPage)]
	bytes := 0
	for i, e := range events {
		if bytes += len(e.json); bytes > feedPageBytes && i > 0 {
			return events[:i]
		}
	}
	return events
}

// pump fills the feed until the turn is over.
func (f *feed) pump(t *turn.Turn) {
	defer f.end()
	for seq := int64(0); ; {
		s := subscribe(t, seq)
		for record := range s.C {
			f.add(event{record.Event.Seq, record.Event.Kind, record.JSON})
		}
		if !s.Gap() {
			return
		}
		seq = s.Last()
	}
}

// subscribe begins behind seq or, where the turn no longer holds that, as near
// to it as can be.
func subscribe(t *turn.Turn, seq int64) *turn.Subscription {
	for {
		if s, ok := t.Subscribe(seq); ok {
			return s
		}
		seq = t.Oldest() - 1
	}
}
