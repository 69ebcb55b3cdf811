// Package audit sends audit records elsewhere, where who can write the journal cannot
// change them.
package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/text"
)

// Sender sends records to one place. Send gives how many of the first have gone; an
// error says why not all have, or is a *Rejected. It ends with ctx.
type Sender interface {
	Send(ctx context.Context, records []journal.Audit) (sent int, err error)
	Close()
}

// Rejected is what a receiver says of records that have all gone: that it has not kept some,
// or only a warning. They are not to be sent again.
type Rejected struct {
	Records int // that it has not kept
	Why     error
}

// Error implements error.
func (r *Rejected) Error() string { return r.Why.Error() }

// Unwrap gives the receiver's own words.
func (r *Rejected) Unwrap() error { return r.Why }

const (
	// maxQueued bounds the records that wait, maxBatch those that are sent at once.
	maxQueued = 4096
	maxBatch  = 256
	// widenAfter is how often a smaller part has to be taken before a larger one is tried.
	widenAfter = 16

	firstPause, lastPause = time.Second, 30 * time.Second
	sendLimit             = 30 * time.Second
	tellEvery             = time.Minute
	// closeLimit is how long the end of the daemon waits for what is still queued.
	closeLimit = 3 * time.Second

	maxErrorBytes = 300
)

// Outbox holds what waits to be sent. Nobody waits for it: where too much is there the
// new is lost, which is counted, said in the log, and sent as a record of its own once
// there is room again.
type Outbox struct {
	name   string
	sender Sender
	logger hclog.Logger
	onLoss func(n int)

	queue  chan journal.Audit
	lost   atomic.Int64 // since the last record that says so
	life   context.Context
	cut    context.CancelFunc
	ending chan struct{}
	done   sync.WaitGroup

	// The goroutine's: when it last logged, how many records it sends at once, and how
	// often in a row so many were taken.
	logged      time.Time
	part, taken int
}

// NewOutbox begins to send. lost, if not nil, is told how many records are lost, from
// any goroutine.
func NewOutbox(name string, s Sender, logger hclog.Logger, lost func(n int)) *Outbox {
	if lost == nil {
		lost = func(int) {}
	}
	o := &Outbox{name: name, sender: s, logger: logger, onLoss: lost, queue: make(chan journal.Audit, maxQueued), ending: make(chan struct{}), part: maxBatch}
	o.life, o.cut = context.WithCancel(context.Background())
	o.done.Go(o.run)
	return o
}

// Put queues a record, at once.
func (o *Outbox) Put(a journal.Audit) {
	select {
	case o.queue <- a:
	default:
		o.lost.Add(1)
		o.onLoss(1)
	}
}

// Close sends what is queued, for a while, and gives up on the rest.
func (o *Outbox) Close() {
	close(o.ending)
	timer := time.AfterFunc(closeLimit, o.cut)
	o.done.Wait()
	timer.Stop()
	o.cut()
	o.sender.Close()
	if rest := len(o.queue); rest > 0 {
		o.lost.Add(int64(rest))
		o.onLoss(rest)
	}
	if n := o.lost.Load(); n > 0 {
		o.logger.Error("audit records are lost: the journal has them", "to", o.name, "records", n)
	}
}

func (o *Outbox) run() {
	for o.life.Err() == nil {
		select {
		case a := <-o.queue:
			o.deliver(o.batch(a))
		case <-o.ending:
			if len(o.queue) == 0 {
				return
			}
			o.deliver(o.batch(<-o.queue))
		}
	}
}

// batch takes what else waits, and a record of what was lost behind it, lost in
// number.
func (o *Outbox) batch(first journal.Audit) (list []journal.Audit, lost int64) {
	list = []journal.Audit{first}
	for len(list) < maxBatch && len(o.queue) > 0 {
		list = append(list, <-o.queue)
	}
	if lost = o.lost.Swap(0); lost > 0 {
		list = append(list, lostRecord(lost))
	}
	return list, lost
}

// lostRecord says at the other end that records are missing there.
func lostRecord(n int64) journal.Audit {
	return journal.Audit{
		Time: time.Now().UTC(), Who: "daemon", Action: journal.ActionLost, What: fmt.Sprintf("%d records", n),
		Outcome: "not sent: too many waited; the journal has them",
	}
}

// deliver tries until all of a batch are sent, or the end. After a failure it sends fewer at
// once: all may be more than the receiver takes in one request.
func (o *Outbox) deliver(list []journal.Audit, lost int64) {
	pause := firstPause
	for len(list) > 0 {
		part := min(o.part, len(list))
		sent, err := o.send(list[:part])
		list = list[sent:]
		if sent > 0 {
			pause = firstPause
		}
		if sent == part {
			o.widen(part)
			continue
		}
		if pause > firstPause || part == 1 { // else they may only be too many
			o.tell("audit records cannot be sent, and wait", "lost", int(o.lost.Load()), err)
		}
		o.part, o.taken = max(1, part/2), 0
		if !o.rest(pause) {
			o.lose(len(list), lost)
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// widen has more sent at once where as many as were tried have been taken for a while. A
// shorter list does not show that they would be.
func (o *Outbox) widen(part int) {
	if part < o.part {
		return
	}
	if o.taken++; o.taken == widenAfter {
		o.part, o.taken = min(2*o.part, maxBatch), 0
	}
}

// send tries once. What the receiver has rejected is gone.
func (o *Outbox) send(list []journal.Audit) (sent int, err error) {
	ctx, cancel := context.WithTimeout(o.life, sendLimit)
	defer cancel()
	sent, err = o.sender.Send(ctx, list)
	if rejected, ok := errors.AsType[*Rejected](err); ok {
		o.onLoss(rejected.Records)
		o.tell("a receiver of audit records rejects some, or warns", "rejected", rejected.Records, err)
	}
	return sent, err
}

// lose counts the last n records of a batch, which are given up. The very last, where
// lost is not 0, says that so many were lost before: they are still, and were counted.
func (o *Outbox) lose(n int, lost int64) {
	if lost > 0 {
		o.lost.Add(lost)
		n--
	}
	o.lost.Add(int64(n))
	o.onLoss(n)
}

// rest waits; false if there is no time for that.
func (o *Outbox) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.life.Done():
		return false
	}
}

// tell logs what is wrong, now and then.
func (o *Outbox) tell(what, counted string, n int, err error) {
	now := time.Now()
	if err == nil || !o.logged.IsZero() && now.Sub(o.logged) < tellEvery {
		return
	}
	o.logged = now
	o.logger.Warn(what, "to", o.name, "waiting", len(o.queue), counted, n, "error", text.Bytes(err.Error(), maxErrorBytes))
}
