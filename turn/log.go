package turn

import (
	"slices"
	"sync"
	"sync/atomic"
)

// What a turn keeps in memory for its readers, and what a reader is given of it
// at once but for one record that is larger by itself: a reader that takes
// nothing holds no more than that.
const (
	maxKept      = 4096
	maxKeptBytes = 4 << 20
	maxPageBytes = 64 << 10
	// maxAllKeptBytes is for all turns of a registry together. Beyond it a turn
	// that adds to its log keeps no more than a page.
	maxAllKeptBytes = 64 << 20
)

// eventLog holds the newest events of a turn for any number of readers, each of
// which knows by itself how far it is. The owner alone adds to it.
type eventLog struct {
	mu      sync.Mutex
	records []*Record // without gaps
	bytes   int
	last    int64
	over    bool
	changed chan struct{} // closed by the next change; nil if nobody waits
	all     *atomic.Int64 // what the logs of all active turns hold, in bytes
}

// add takes new events, and forgets some of the oldest if there are too many.
func (l *eventLog) add(records []Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		l.records, l.last = append(l.records, &r), r.Event.Seq
		l.hold(r.bytes())
		l.forget()
	}
	l.tell()
}

// hold counts what is held.
func (l *eventLog) hold(bytes int) {
	l.bytes += bytes
	l.all.Add(int64(bytes))
}

func (l *eventLog) forget() {
	most := maxKeptBytes
	if l.all.Load() > maxAllKeptBytes {
		most = maxPageBytes
	}
	if len(l.records) <= maxKept && l.bytes <= most {
		return
	}
	drop := 0
	for drop < len(l.records)-1 && (len(l.records)-drop > maxKept*3/4 || l.bytes > most*3/4) {
		l.hold(-l.records[drop].bytes())
		drop++
	}
	l.records = append([]*Record(nil), l.records[drop:]...)
}

// end tells the readers that there will be no more. Records held from then on
// are the readers' own, and count no longer.
func (l *eventLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.all.Add(-int64(l.bytes))
	l.tell()
}

func (l *eventLog) tell() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *eventLog) newest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// first is the seq of the oldest event that is held, or of the one to come.
func (l *eventLog) first() int64 { return l.last - int64(len(l.records)) + 1 }

// page is what a reader finds behind the event that it has seen last.
type page struct {
	records []*Record // the reader's own; none if it has missed some, or seen all
	first   int64     // of those that are held
	over    bool
	changed <-chan struct{} // closed when there is more; nil if there are records
}

// page gives what follows seq.
func (l *eventLog) page(seq int64) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := page{first: l.first(), over: l.over}
	switch {
	case seq < p.first-1: // seq may be the largest of all
	case seq < l.last:
		p.records = slices.Clone(pageOf(l.records[seq+1-p.first:]))
	default:
		p.changed = l.change()
	}
	return p
}

func (l *eventLog) change() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// after gives all that follows seq, if all of it is held.
func (l *eventLog) after(seq int64) ([]*Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.first(); seq >= first-1 && seq <= l.last {
		return slices.Clone(l.records[seq+1-first:]), true
	}
	return nil, false
}

// pageOf is how much of the records a reader is given at once.
func pageOf(records []*Record) []*Record {
	bytes := 0
	for i, r := range records {
		if bytes += r.bytes(); bytes > maxPageBytes && i > 0 {
			return records[:i]
		}
	}
	return records
}

// bytes is what a record holds in memory, roughly.
func (r *Record) bytes() int {
	n := len(r.JSON) + recordBytes
	if c := r.Event.Content; c != nil {
		n += c.Bytes()
	}
	if r.Result == nil {
		return n
	}
	return n + r.Result.OutputBytes()
}

// recordBytes is that of the structs.
const recordBytes = 1 << 10
