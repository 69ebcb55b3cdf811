package worker

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/supervisor"
)

// lifeName matches what callers call their lives.
var lifeName = lazy.Regexp(`^[A-Za-z0-9]{1,64}$`)

// hear takes a caller's beat.
func (w *Worker) hear(m *nats.Msg) {
	key := link.Token(m.Subject, 3)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.callers[key]
	if c == nil {
		w.stranger(key, m.Data)
		return
	}
	var b fleetv1.CallerBeat
	if err := seal.Open(seal.Beat, key, nil, m.Data, &b); err != nil || b.Caller != key {
		w.complain(key, "a caller's beat is not its own")
		return
	}
	if !lifeName().MatchString(b.Life) { // each beat of the worker repeats it, and so does the ledger
		w.complain(key, "a caller's beat names no life")
		return
	}
	deaf := c.hold.Over(now())
	if deaf { // what comes now is not for what had ended by then
		w.endAll(c)
	}
	for _, echo := range b.Echoes {
		if echo.Worker == w.config.Name && echo.Epoch != w.epoch {
			w.duplicated(c, echo)
		} else if echo.Worker == w.config.Name {
			for _, a := range c.hears(&w.beats, b.Life, echo.Beat, w.config.Lease) {
				w.end(a, api.ReasonDisconnect)
				a.lose()
			}
		}
	}
	if !c.twin.Over(now()) {
		w.warnOnce(c.key, twoOfOneKey)
	}
	if c.session == nil && c.life == b.Life && c.life != "" {
		c.release = link.Release{Version: b.Version, Protocol: b.Protocol}
		var err error
		if c.session, err = w.curve.WorkerSession(b.Xkey, w.epoch); err != nil {
			w.complain(key, "a caller has no session: "+err.Error())
		}
	}
	if err := c.renew(); err != nil {
		w.config.Logger.Error("calls will end, for their leases cannot be renewed", "error", err)
	}
	if deaf && !c.hold.Over(now()) {
		go w.beat() // it may be offered calls now
	}
}

// twoOfOneKey is what people have to see to at callers.
const twoOfOneKey = "two daemons have one key, and only the later one has calls made here: give each a key of its own, and start both again"

// duplicated logs that another process with the worker's name and key is heard: an echo of an
// earlier life, which has ended, names the same beat each time. A worker that the engine does
// not let speak under its name has not that one's key, and was told so.
func (w *Worker) duplicated(c *caller, echo *fleetv1.Echo) {
	denied := errors.Is(w.control.LastError(), nats.ErrPermissionViolation)
	if before := c.other; !denied && before.GetEpoch() == echo.Epoch && echo.Beat > before.GetBeat() {
		w.warnOnce(c.key, "another process has the name and the key of this worker, and has this caller's calls: end one of the two, or give it a name and a key of its own")
	}
	c.other = echo
}

// warnOnce logs something about a caller.
func (w *Worker) warnOnce(key, what string) {
	if line := key + " " + what; len(w.complaints) < maxComplaints && !w.complaints[line] {
		w.complaints[line] = true
		w.config.Logger.Warn(what+"; it is not logged again", "caller", key)
	}
}

// stranger says that there is a caller that is not trusted, while no other one is heard.
// That may be the one that the worker is for.
func (w *Worker) stranger(key string, beat []byte) {
	for _, c := range w.callers {
		if !c.hold.Over(now()) {
			return
		}
	}
	const what = "a daemon is heard whose key is not among --caller, and no calls of it are taken: if toolhost fleet keys prints the key there, start the worker with --caller and the key"
	if !w.complaints[key+" "+what] && seal.Open(seal.Beat, key, nil, beat, &fleetv1.CallerBeat{}) == nil {
		w.warnOnce(key, what)
	}
}

// fence ends what runs for callers that were not heard.
func (w *Worker) fence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.callers {
		if c.hold.Over(now()) {
			w.endAll(c)
		}
	}
}

// endAll ends all of a caller that was not heard for the lease.
func (w *Worker) endAll(c *caller) {
	c.drop()
	for _, a := range c.attempts {
		if a.state == start.Started && a.told == 0 {
			w.config.Logger.Warn("a caller was not heard for the lease, and its call is ended", "call", a.request.ID, "lease", w.config.Lease.String())
		}
		w.end(a, api.ReasonDisconnect)
	}
}

// end has an attempt begin no more, or aborts its call.
func (w *Worker) end(a *attempt, reason api.Reason) {
	waited := a.waits
	if w.expire(a, nil); waited {
		w.tell(a, start.SayNever)
	}
	if a.state == start.Started {
		a.abort(reason, false)
	}
}

// keepRefusal is how long the result of a refusal is kept at least: until its caller does not
// ask for it any more.
const keepRefusal = 10 * time.Second

// expire refuses an attempt that has not started; why is nil where nobody needs to know.
func (w *Worker) expire(a *attempt, why *fleetv1.Never) {
	next := a.state.Expire()
	if next == a.state {
		return
	}
	a.state, a.why = next, why
	w.drop(a)
	if why.GetResult() != nil { // it may be long, and the attempt is remembered
		time.AfterFunc(max(w.config.Lease, keepRefusal), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			why.Result = nil
		})
	}
}

// drop leaves all that an attempt holds which will not start: it is remembered for long.
func (w *Worker) drop(a *attempt) {
	call := a.call
	a.giveUp()
	a.asked = nil
	if call == nil {
		w.release(a)
		return
	}
	w.releaseAfter(a, call.Gone())
}

// ended notes that a call has its result. The slot of one that could not be killed is held
// until it is gone after all, as the supervisor's is; the supervisor alone holds that of
// a start which has not ended yet.
func (w *Worker) ended(a *attempt, call *supervisor.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.state = start.Finished
	w.unread++            // until run returns
	gone := a.call.Gone() // what was made early, if the call has not come to it
	if call.Result().Kill.Survivors > 0 {
		gone = call.Gone()
	}
	w.releaseAfter(a, gone)
}

// releaseAfter gives back an attempt's slot once its processes are gone. The caller holds mu.
func (w *Worker) releaseAfter(a *attempt, gone <-chan struct{}) {
	select {
	case <-gone:
		w.release(a)
		return
	default:
	}
	w.stuck++
	w.calls.Go(func() {
		select {
		case <-gone:
		case <-w.closed:
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stuck--
		w.release(a)
	})
}
