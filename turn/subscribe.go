package turn

import (
	"encoding/json"
	"slices"

	"github.com/toolhost/toolhost/supervisor"
)

// Subscription is one reader of a turn's events.
type Subscription struct {
	// C gives the records in order and is closed after the last one of the
	// turn, or when the reader is too slow: then Gap says from where to resume.
	// All readers are given the same records: they are not to be changed.
	C    <-chan *Record
	t    *Turn
	send chan *Record
	// All below is the owner's until C is closed.
	sizes []int // of the records that send may still hold
	bytes int   // their sum
	last  int64 // the newest that was sent
	gap   bool
}

// Gap is true, once C is closed, if the reader was too slow to be served on. It
// misses nothing by subscribing again with Last.
func (s *Subscription) Gap() bool { return s.gap }

// Last is the newest event that C has given or holds; valid once C is closed.
func (s *Subscription) Last() int64 { return s.last }

// Close ends the subscription.
func (s *Subscription) Close() { s.t.do(func() { s.t.unsubscribe(s) }) }

// What a turn keeps in memory for readers that resume, and how far each reader
// may lag behind: both in records and in bytes. Older ones are in the journal.
const (
	maxKept            = 4096
	maxKeptBytes       = 4 << 20
	maxSubscriber      = 256
	maxSubscriberBytes = 2 << 20
)

// Subscribe gives the events after seq: 0 is all. ok is false if the turn no
// longer holds the first of them; they are in the journal.
func (t *Turn) Subscribe(after int64) (s *Subscription, ok bool) {
	s = &Subscription{t: t}
	if !t.do(func() { ok = t.subscribe(s, after) }) {
		ok = t.subscribe(s, after) // the turn is over, and nobody else's
	}
	return s, ok
}

// Oldest is the seq of the first event that Subscribe can still give.
func (t *Turn) Oldest() int64 {
	return t.seqOf(func() int64 { return t.shown() - int64(len(t.kept.records)) + 1 })
}

// Newest is the seq of the last event so far: behind it begins what is to come.
func (t *Turn) Newest() int64 { return t.seqOf(t.shown) }

// seqOf asks the owner, or the turn itself once it is over.
func (t *Turn) seqOf(of func() int64) (seq int64) {
	if !t.do(func() { seq = of() }) {
		seq = of()
	}
	return seq
}

func (t *Turn) subscribe(s *Subscription, after int64) bool {
	missed, ok := t.kept.after(after, t.shown())
	if !ok {
		return false
	}
	s.send = make(chan *Record, len(missed)+maxSubscriber)
	s.C, s.last = s.send, after
	for _, r := range missed {
		if !s.offer(r) {
			s.gap = true
		}
	}
	if t.over || s.gap {
		close(s.send)
		return true
	}
	t.subscribers = append(t.subscribers, s)
	return true
}

// shown is the seq of the newest event that readers were given.
func (t *Turn) shown() int64 { return t.seq - int64(len(t.outbox)) }

// offer sends a record unless the reader lags too far behind.
func (s *Subscription) offer(r *Record) bool {
	if s.gap {
		return false
	}
	for len(s.sizes) > len(s.send) { // the reader has taken these
		s.bytes -= s.sizes[0]
		s.sizes = s.sizes[1:]
	}
	size := r.bytes()
	if len(s.sizes) > 0 && s.bytes+size > maxSubscriberBytes {
		return false
	}
	select {
	case s.send <- r:
		s.sizes, s.bytes, s.last = append(s.sizes, size), s.bytes+size, r.Event.Seq
		return true
	default:
		return false
	}
}

func (t *Turn) unsubscribe(s *Subscription) {
	if i := slices.Index(t.subscribers, s); i >= 0 {
		t.subscribers = slices.Delete(t.subscribers, i, i+1)
		close(s.send)
	}
}

// kept are the newest records, in order.
type kept struct {
	records []*Record
	bytes   int
}

func (k *kept) add(r *Record) {
	k.records, k.bytes = append(k.records, r), k.bytes+r.bytes()
	if len(k.records) <= maxKept && k.bytes <= maxKeptBytes {
		return
	}
	drop := 0
	for drop < len(k.records)-1 && (len(k.records)-drop > maxKept*3/4 || k.bytes > maxKeptBytes*3/4) {
		k.bytes -= k.records[drop].bytes()
		drop++
	}
	k.records = append([]*Record(nil), k.records[drop:]...)
}

// after gives what follows seq, if all of it is kept; last is the newest seq.
func (k *kept) after(seq, last int64) ([]*Record, bool) {
	first := last - int64(len(k.records)) + 1
	if seq+1 < first || seq > last {
		return nil, false
	}
	return k.records[seq+1-first:], true
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

// emit numbers an event. It is shown by the next flush.
func (t *Turn) emit(e Event, result *supervisor.Result) {
	t.seq++
	e.Seq, e.Time, e.TurnID = t.seq, t.now().UTC(), t.info.TurnID
	raw, err := json.Marshal(e)
	if err != nil { // only content that came as JSON and is none
		e.Content, e.Schema, e.Default = nil, nil, nil
		raw, _ = json.Marshal(e)
	}
	t.outbox = append(t.outbox, Record{Event: e, JSON: raw, Result: result})
}

// flush has the new events journalled, together, and shows them; who waited for
// what they tell goes on. While the journal fails, the turn takes no new calls;
// what runs goes on to its end, and its events are shown all the same.
func (t *Turn) flush() {
	t.record()
	for _, record := range t.outbox {
		t.show(record)
	}
	for _, done := range t.flushed {
		close(done)
	}
	t.flushed = nil
	refused := t.recorded.err != nil && t.seq == 1 // then there is no turn
	if observe := t.m.config.Observe; observe != nil && len(t.outbox) > 0 && !refused {
		observe(t.outbox)
	}
	clear(t.outbox) // their content is not held on to
	t.outbox = t.outbox[:0]
}

func (t *Turn) show(record Record) {
	t.kept.add(&record)
	for _, s := range slices.Backward(t.subscribers) {
		if !s.offer(&record) { // it resumes from s.last
			s.gap = true
			t.unsubscribe(s)
		}
	}
}
