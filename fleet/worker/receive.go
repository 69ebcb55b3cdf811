package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/portable"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// receive takes what callers send.
func (w *Worker) receive(m *nats.Msg) {
	key, kind := link.Token(m.Subject, 3), link.Token(m.Subject, 4)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.callers[key]
	if c == nil {
		w.complain(key, "a caller that is not trusted sends something")
		return
	}
	var err error
	late := false
	switch kind {
	case "offer":
		var o fleetv1.Offer
		if err = seal.Open(seal.Offer, key, c.session, m.Data, &o); err == nil {
			w.offered(c, &o, m.Reply)
		} else {
			late = c.late(seal.Offer, m.Data, &o)
		}
	case "ctl":
		var ctl fleetv1.Control
		if err = seal.Open(seal.Control, key, c.session, m.Data, &ctl); err == nil {
			w.controlled(c, &ctl)
		} else {
			late = c.late(seal.Control, m.Data, &ctl)
		}
	}
	if err != nil && !late && !errors.Is(err, seal.ErrEarlier) {
		w.complain(key, "what a caller sends is refused: "+err.Error())
	}
}

// maxComplaints bounds the log about one life's callers.
const maxComplaints = 100

// complain counts what a caller sends that is refused, and logs each thing once.
func (w *Worker) complain(key, what string) {
	w.refused++
	w.warnOnce(key, what)
}

const notOurs = "what a caller sends is for another worker, or of another caller"

// ours says whether a message is for this worker, from the caller that it came from.
func (w *Worker) ours(c *caller, id *fleetv1.Attempt) bool {
	return id != nil && id.Caller == c.key && id.Worker == w.config.Name
}

// offered takes an offer. The caller holds mu, as in all that follows.
func (w *Worker) offered(c *caller, o *fleetv1.Offer, reply string) {
	id := o.Attempt
	if !w.ours(c, id) || link.Token(reply, 2) != c.key || link.Token(reply, 3) != w.config.Name {
		w.complain(c.key, notOurs)
		return
	}
	a := &attempt{id: id, reply: reply, at: time.Now(), offer: start.Offer}
	if o.Go {
		a.offer = start.OfferAndGo
	}
	switch known := c.attempts[id.Serial]; {
	case id.Epoch != w.epoch: // it may have been started there
		w.earlier(a)
	case id.Life != c.life:
		w.tell(a, start.SayUnknown) // it may have started in that life, and could not be remembered
	case known != nil:
		w.answer(known, known.offer)
	case c.state(id.Serial) != start.Unseen:
		w.tell(a, start.SayUnknown)
	default:
		w.fresh(c, a, o)
	}
}

// fresh takes an offer that was not there before.
func (w *Worker) fresh(c *caller, a *attempt, o *fleetv1.Offer) {
	if !c.remember(a) {
		w.tell(a, start.SayUnknown)
		return
	}
	if why := w.unfit(c, o); why != nil {
		w.expire(a, why)
		w.tell(a, start.SayNever)
		return
	}
	a.asked, a.left = o.Request, leftOf(o.LeftMs)
	w.seat(a)
	w.prepareBeside(a)
}

func (w *Worker) prepareBeside(a *attempt) {
	a.preparing = true
	raw, soon := a.asked, !a.waits // which another may change meanwhile
	w.calls.Go(func() { w.prepare(a, raw, soon) })
}

// unfit says why an offer is not taken at all.
func (w *Worker) unfit(c *caller, o *fleetv1.Offer) *fleetv1.Never {
	at, known := w.beats.SentAt(o.Beat)
	unlike := link.Unlike(link.Release{Version: w.config.Version, Protocol: link.Protocol}, c.release)
	switch {
	case unlike != "":
		return &fleetv1.Never{Why: fleetv1.Why_WHY_CANNOT, Detail: unlike}
	case w.draining:
		return &fleetv1.Never{Why: fleetv1.Why_WHY_DRAINING, Detail: "the worker takes no more calls"}
	case c.drained:
		return &fleetv1.Never{Why: fleetv1.Why_WHY_DRAINING, Detail: "the worker takes no more calls of this caller, which has asked for that"}
	case c.hold.Over(now()):
		return &fleetv1.Never{Why: fleetv1.Why_WHY_STALE, Detail: "the worker does not hear its caller yet"}
	case !known || now()-at > w.config.Lease:
		return &fleetv1.Never{Why: fleetv1.Why_WHY_STALE, Detail: "the offer is old"}
	case w.full(o.Go):
		detail := "no slot is free"
		if !o.Go {
			detail += ", nor a place to wait for one"
		}
		return &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: detail}
	case w.unread >= maxUnread:
		return &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: "too many results wait for their callers"}
	}
	return nil
}

// prepare looks whether the call can be made here, and says so. One that has to wait may
// do so for long: it gives back what it holds, and is prepared again once it has a slot.
func (w *Worker) prepare(a *attempt, raw []byte, soon bool) {
	p, why, err := w.plan(raw, soon)
	var never *fleetv1.Never
	if err != nil {
		never, p.call = neverOf(why, err, p.call), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.expire(a, never)
	}
	if a.planned, a.preparing = p, false; err == nil {
		a.begun = w.begunOf(p.call)
		if p.asksLater() {
			a.begun.TimeoutMs = budget.Milliseconds(p.call.Timeout().Max)
		}
	}
	switch {
	case a.state == start.Refused || a.waits: // it was given up meanwhile, or waits
		a.giveUp()
	case len(a.request.Secrets) == 0: // with secrets it is planned anew at its start
		w.warmUp(a)
	}
	w.takeUp(a)
}

// warmUp has made what the call needs while its go is on its way.
func (w *Worker) warmUp(a *attempt) {
	if c := w.callers[a.id.Caller]; !c.hold.Over(now()) && w.lend(c, a) == nil {
		a.call.WarmUp(a.lease)
	}
}

// controlled takes a control.
func (w *Worker) controlled(c *caller, ctl *fleetv1.Control) {
	id := ctl.Attempt
	if !w.ours(c, id) {
		w.complain(c.key, notOurs)
		return
	}
	message := start.Nothing
	switch ctl.What.(type) {
	case *fleetv1.Control_Drain:
		if id.Epoch == w.epoch && id.Life == c.life {
			w.drainAsked(c)
		}
		return
	case *fleetv1.Control_Go:
		message = start.Go
	case *fleetv1.Control_Void:
		message = start.Void
	case *fleetv1.Control_Query:
		message = start.Query
	}
	a := c.attempts[id.Serial]
	switch {
	case id.Epoch != w.epoch:
		if message != start.Nothing {
			w.earlier(&attempt{id: id, reply: link.FrameSubject(id.Caller, w.config.Name, ctl.Inbox)})
		}
	case id.Life != c.life:
		// All of another life is ended, and nothing of it is on record. It may ask all the same,
		// where another daemon has its key.
		if message != start.Nothing {
			w.tell(&attempt{id: id, reply: link.FrameSubject(id.Caller, w.config.Name, ctl.Inbox)}, start.SayUnknown)
		}
	case a == nil:
		if message != start.Nothing {
			w.unknown(c, id, ctl, message)
		}
	case message != start.Nothing:
		if message == start.Go && a.state == start.Prepared && !a.preparing {
			w.admit(c, a, ctl.GetGo())
		}
		w.answer(a, message)
	default:
		w.passOn(a, ctl)
	}
}

// admit refuses a go that comes too late, or whose secrets cannot be read.
func (w *Worker) admit(c *caller, a *attempt, g *fleetv1.Go) {
	a.left = cmp.Or(leftOf(g.GetLeftMs()), a.left)
	if c.hold.Over(now()) { // as when the worker was stopped in between
		w.expire(a, &fleetv1.Never{Why: fleetv1.Why_WHY_STALE, Detail: "the worker has not heard its caller for the lease"})
		return
	}
	if err := w.lend(c, a); err != nil {
		w.expire(a, &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: err.Error()})
		return
	}
	if len(a.request.Secrets) == 0 {
		return
	}
	values, err := w.curve.Open(g.GetSecrets(), g.GetXkey())
	if err == nil {
		err = portable.Reveal(&a.request, values)
	}
	if err != nil {
		w.expire(a, &fleetv1.Never{Why: fleetv1.Why_WHY_CANNOT, Detail: err.Error()})
	}
}

// unknown answers about an attempt that is not there, and remembers what it says.
func (w *Worker) unknown(c *caller, id *fleetv1.Attempt, ctl *fleetv1.Control, m start.Message) {
	a := &attempt{id: id, reply: link.FrameSubject(id.Caller, w.config.Name, ctl.Inbox), state: c.state(id.Serial)}
	if a.state == start.Unseen && !c.remember(a) {
		return // it is asked again
	}
	w.answer(a, m)
}

// passOn takes what a call is sent while it runs.
func (w *Worker) passOn(a *attempt, ctl *fleetv1.Control) {
	switch what := ctl.What.(type) {
	case *fleetv1.Control_Abort:
		if a.state == start.Started {
			a.abort(api.Reason(what.Abort.Reason), what.Abort.AtOnce)
		}
		w.expire(a, nil) // what is prepared yet does not start; that is said then, or when it is asked
	case *fleetv1.Control_Ack:
		if o := a.out.Load(); o != nil {
			o.ack(what.Ack.Through)
		}
	case *fleetv1.Control_Answer:
		w.answered(a, what.Answer)
	}
}

// answered passes an answer on to the tool.
func (w *Worker) answered(a *attempt, reply *fleetv1.Answer) {
	o := a.out.Load()
	if o == nil || len(reply.GetAnswer()) > 2*portable.MaxQuestionBytes {
		return
	}
	values, err := w.curve.Open(reply.GetAnswer(), reply.GetXkey())
	if err != nil || len(values) != 1 {
		w.complain(a.id.Caller, "an answer of a caller's cannot be read")
		return
	}
	var answer supervisor.Answer
	if json.Unmarshal([]byte(values[0]), &answer) == nil {
		o.questions.answer(reply.GetQuestion(), answer)
	}
}

// troubled notes why no call can be started, and logs what is new: callers ask again and
// again. nil is that one can.
func (w *Worker) troubled(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == w.trouble:
	case err != nil:
		w.config.Logger.Error("no call can be started; it is not logged again", "error", err)
	default:
		w.config.Logger.Info("calls can be started again")
	}
	w.trouble = now
}

// answer takes a message about an attempt of this life.
func (w *Worker) answer(a *attempt, m start.Message) {
	if a.preparing || a.waits { // the answer comes when it is prepared, and has a slot
		if m == start.Void {
			w.expire(a, nil)
		} else {
			w.notYet(a)
		}
		return
	}
	next, say, begin := a.state.Next(m)
	if begin {
		err := w.ledger.start(nameOf(a.id), w.live)
		if w.troubled(err); err != nil {
			next, say, begin = start.Refused, start.SayNever, false
			a.why = &fleetv1.Never{Why: fleetv1.Why_WHY_BUSY, Detail: err.Error()}
		}
	}
	fresh := next != a.state
	if a.state = next; fresh && next == start.Refused {
		w.drop(a) // once: its slot may still be held for a process of it
	}
	if begin { // run says so
		w.begin(a)
		return
	}
	w.tell(a, say)
}

// notYet tells the caller that its offer is not forgotten.
func (w *Worker) notYet(a *attempt) {
	f := &fleetv1.Frame{What: &fleetv1.Frame_Preparing{Preparing: &fleetv1.Preparing{}}}
	if !a.preparing {
		f.What = &fleetv1.Frame_Queued{Queued: &fleetv1.Queued{Waiting: int32(len(w.line))}}
	}
	w.say(w.control, a, f)
}

// live are the attempts that the ledger must still know.
func (w *Worker) live() (names []string) {
	for _, c := range w.callers {
		for _, a := range c.attempts {
			if a.state == start.Started {
				names = append(names, nameOf(a.id))
			}
		}
	}
	return names
}

// earlier answers about an attempt that was offered to an earlier life of the worker.
func (w *Worker) earlier(a *attempt) {
	w.tell(a, start.Earlier(w.ledger.of(a.id.Epoch, nameOf(a.id))))
}

// tell answers on the control connection, which no output holds up.
func (w *Worker) tell(a *attempt, say start.Answer) {
	f := &fleetv1.Frame{}
	switch say {
	case start.SayNothing:
		return
	case start.SayReady:
		f.What = &fleetv1.Frame_Ready{Ready: w.ready}
	case start.SayNever:
		why := cmp.Or(a.why, &fleetv1.Never{})
		f.What = &fleetv1.Frame_Never{Never: why}
	case start.SayStarted:
		f.What = &fleetv1.Frame_Started{Started: a.begun}
	case start.SayGone:
		f.What = &fleetv1.Frame_Gone{Gone: &fleetv1.Gone{Swept: w.swept}}
	case start.SayUnknown:
		f.What = &fleetv1.Frame_Unknown{Unknown: &fleetv1.Unknown{}}
	}
	w.say(w.control, a, f)
}

func (w *Worker) say(conn *nats.Conn, a *attempt, f *fleetv1.Frame) {
	if f.Epoch, f.Serial = a.id.Epoch, a.id.Serial; f.Epoch != w.epoch {
		f.Speaker = w.epoch
	}
	raw, err := proto.Marshal(f)
	if err != nil || conn == nil {
		return
	}
	_ = conn.Publish(a.reply, raw) // what is lost is sent again, or asked about
}
