package fleet

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/stream"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// attempt is one offer of a call.
type attempt struct {
	of    *remote
	n     int // as package start counts
	id    *fleetv1.Attempt
	inbox string
	beat  uint64        // the newest of its worker's when it was made
	made  time.Duration // when it was first offered
	sent  time.Duration // when the offer was last sent
	// answered is when the worker last said anything of it; before that, when it was made, and
	// when it got the go.
	answered time.Duration
	// queued: its worker has no slot yet, and keeps a place for it.
	queued bool
	silent bool // that worker was not heard lately
	// doubted: it had its go with the offer, and was given up without proof that it has not
	// started.
	doubted bool
	over    atomic.Bool // its worker will not start it, or is told not to
	newest  uint64      // of its data in the queue; guarded by that
}

// markQueued notes that a frame is in the queue, and says whether it was there already.
func (a *attempt) markQueued(f *fleetv1.Frame) bool {
	d := f.GetData()
	if d == nil {
		return false
	}
	before := a.newest
	a.newest = max(before, d.Seq)
	return d.Seq <= before
}

// arrived is a message of an attempt.
type arrived struct {
	a      *attempt
	frames []*fleetv1.Frame // none: nobody got the offer
	bytes  int
}

// queue holds what has come for a call until its goroutine takes it. Credit bounds it for
// a worker that heeds that.
type queue struct {
	mu    sync.Mutex
	list  []arrived
	bytes int
	wake  chan struct{}
}

const maxQueued = 2 * stream.Window

// put is false if there is too much. Data that is there already, and was sent again since the
// call has not come to it, does not count.
func (q *queue) put(x arrived) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(x.frames) > 0 {
		if x.frames = slices.DeleteFunc(x.frames, x.a.markQueued); len(x.frames) == 0 {
			return true
		}
	}
	if q.bytes+x.bytes > maxQueued {
		return false
	}
	q.list, q.bytes = append(q.list, x), q.bytes+x.bytes
	q.kick()
	return true
}

func (q *queue) kick() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) take() []arrived {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	for _, x := range list {
		x.a.newest = 0 // a copy of what was taken is acknowledged
	}
	q.list, q.bytes = nil, 0
	return list
}

// overList remembers the last attempts of calls that have ended, so that what a worker sends
// again is acknowledged.
type overList struct {
	ids  map[string]*fleetv1.Attempt
	ring [1024]string
	next int
}

func (o *overList) add(inbox string, id *fleetv1.Attempt) {
	if o.ids == nil {
		o.ids = map[string]*fleetv1.Attempt{}
	}
	delete(o.ids, o.ring[o.next])
	o.ring[o.next], o.ids[inbox] = inbox, id
	o.next = (o.next + 1) % len(o.ring)
}

// receive takes a message, and never waits for a call.
func (f *Fleet) receive(m *nats.Msg) {
	inbox, worker := link.Token(m.Subject, 4), link.Token(m.Subject, 3)
	f.mu.Lock()
	a, over := f.inboxes[inbox], f.over.ids[inbox]
	f.mu.Unlock()
	x := arrived{a: a, bytes: stream.Overhead}
	if m.Header.Get("Status") != "503" {
		var err error
		if x.frames, err = link.Frames(m.Data); err != nil {
			f.refuse(worker, err.Error())
			return
		}
		x.bytes = len(m.Data) + len(x.frames)*stream.Overhead
	}
	if a == nil && over == nil {
		if over = f.longOver(worker, x.frames); over == nil {
			return
		}
	}
	switch {
	case len(x.frames) > 0 && x.frames[0].Speaker != "" && f.isForeign(worker, x.frames[0].Speaker):
	case a == nil:
		for _, frame := range x.frames {
			f.answerLate(over, inbox, frame)
		}
	case a.id.Worker != worker, len(x.frames) > 0 && (x.frames[0].Serial != a.id.Serial || x.frames[0].Epoch != a.id.Epoch):
		f.refuse(worker, "it is of another attempt than that whose inbox it names")
	case !a.of.queue.put(x):
		f.cut(worker)
	}
}

// longOver is the attempt that data is of whose inbox is not remembered any more: one of this
// life that is over, or else nil. Data may be of the life before, whose numbers are given anew:
// so nothing is said of an attempt that is under way.
func (f *Fleet) longOver(worker string, frames []*fleetv1.Frame) *fleetv1.Attempt {
	if len(frames) == 0 || frames[0].GetData() == nil {
		return nil
	}
	serial := frames[0].Serial
	f.mu.Lock()
	defer f.mu.Unlock()
	if serial == 0 || serial > f.serial {
		return nil
	}
	for _, a := range f.inboxes {
		if a.id.Serial == serial {
			return nil
		}
	}
	return &fleetv1.Attempt{Caller: f.config.Key.Public(), Life: f.life, Serial: serial, Worker: worker, Epoch: frames[0].Epoch}
}

// isForeign says whether a life of the worker speaks for another one that this caller does
// not know: a second process with its name and key knows nothing of the first one's calls.
func (f *Fleet) isForeign(worker, speaker string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[worker]
	return p != nil && p.epoch != speaker
}

// refuse counts what a worker sends that cannot be its word, and logs the first of it.
func (f *Fleet) refuse(worker, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused++
	if p := f.peers[worker]; p != nil && !p.refused {
		p.refused = true
		f.config.Logger.Warn("what a worker sends is refused; it is not logged again", "worker", worker, "why", why)
	}
}

// answerLate answers what comes of an attempt that is over, so that its worker is done with it:
// nobody waits for its end. Its process has ended, unless the attempt was given up or its call
// is lost: so it is aborted as well.
func (f *Fleet) answerLate(id *fleetv1.Attempt, inbox string, frame *fleetv1.Frame) {
	switch {
	case frame.GetData() != nil:
		f.control(id, inbox, &fleetv1.Control{What: &fleetv1.Control_Abort{Abort: &fleetv1.Abort{Reason: string(api.ReasonDisconnect)}}})
		f.control(id, inbox, &fleetv1.Control{What: &fleetv1.Control_Ack{Ack: &fleetv1.Ack{Through: 1<<63 - 1}}})
	case frame.GetReady() != nil:
		f.control(id, inbox, &fleetv1.Control{What: &fleetv1.Control_Void{Void: &fleetv1.Void{}}})
	}
}

// cut stops listening to a life of a worker that sends more than it has credit for.
func (f *Fleet) cut(worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[worker]
	if p == nil || p.cut {
		return
	}
	p.cut = true
	f.refused++
	_ = p.frames.Unsubscribe()
	f.config.Logger.Error("a worker sends more than it may, and is not listened to until it is started again", "worker", worker)
	f.kickAll()
}

// newAttempt makes an attempt at a worker, with an inbox.
func (f *Fleet) newAttempt(of *remote, worker string, n int) *attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[worker]
	f.serial++
	a := &attempt{of: of, n: n, inbox: rand.Text(), made: now(), answered: now(), beat: p.beat.Number, id: &fleetv1.Attempt{
		Caller: f.config.Key.Public(), Life: f.life, Serial: f.serial, Worker: worker, Epoch: p.epoch,
	}}
	f.inboxes[a.inbox] = a
	p.offered++
	return a
}

// leave takes an attempt's inbox away.
func (f *Fleet) leave(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.inboxes, a.inbox)
	f.over.add(a.inbox, a.id)
}

// offer sends an attempt to its worker.
func (f *Fleet) offer(a *attempt, o *fleetv1.Offer) error {
	o.Attempt = a.id
	raw, err := f.seal(seal.Offer, a.id.Worker, o)
	if err != nil {
		return err
	}
	err = f.conn.PublishRequest(link.OfferSubject(a.id.Worker, a.id.Caller), link.FrameSubject(a.id.Caller, a.id.Worker, a.inbox), raw)
	if errors.Is(err, nats.ErrReconnectBufExceeded) { // package link has it keep nothing
		return errEngineLost
	}
	return err
}

var errEngineLost = errors.New("the connection to the fleet's engine is lost")

// control sends a control. Some are lost, and calls send those again that they need.
func (f *Fleet) control(id *fleetv1.Attempt, inbox string, c *fleetv1.Control) {
	c.Attempt, c.Inbox = id, inbox
	if raw, err := f.seal(seal.Control, id.Worker, c); err == nil {
		_ = f.conn.Publish(link.ControlSubject(id.Worker, id.Caller), raw)
	}
}

var errRemoved = errors.New("it was removed")

// seal proves that a message to a worker is this caller's: by their session once the
// worker hears this life, else by a signature. For one that was removed there is nothing.
func (f *Fleet) seal(kind seal.Kind, worker string, m proto.Message) ([]byte, error) {
	f.mu.Lock()
	p := f.peers[worker]
	session, removed := p.session, f.removed[worker]
	if !slices.Contains(p.beat.Hears, f.life) {
		session = nil
	}
	f.mu.Unlock()
	if removed {
		return nil, errRemoved
	}
	if session == nil {
		return f.config.Key.Seal(kind, m)
	}
	return session.Seal(kind, m)
}

// vouched says whether the curve key of a worker's life is signed by the key that this
// caller knows for the worker.
func (f *Fleet) vouched(a *attempt, r *fleetv1.Ready) error {
	public := f.config.Workers[a.id.Worker]
	if public == "" {
		return errors.New("fleet.workers has no key for it")
	}
	return seal.CheckCurve(public, a.id.Epoch, r.GetXkey(), r.GetSignature())
}

// sighting is what is known of the worker of an attempt.
type sighting struct {
	moved         bool // it lives in another epoch by now
	cut           bool // it is not listened to
	removed       bool
	silent, lease time.Duration
}

func (f *Fleet) heard(a *attempt) sighting {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[a.id.Worker]
	return sighting{p.epoch != a.id.Epoch, p.cut, f.removed[p.name], p.watch.Silent(p.since, now()), p.lease()}
}

// leaseOver says whether all of an attempt has ended with its lease, as its launcher sees
// to, with this grace period.
func (f *Fleet) leaseOver(a *attempt, grace time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[a.id.Worker]
	ended := p.watch.Ended(p.lease(), lease.Stop(grace))
	return p.epoch == a.id.Epoch && ended > 0 && now() >= ended
}
