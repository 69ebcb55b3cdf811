package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

const (
	beatEvery  = 500 * time.Millisecond
	checkEvery = 100 * time.Millisecond
	// maxUnread is how many calls may have results that their callers have not taken.
	maxUnread = 256
)

// Worker is a running one.
type Worker struct {
	config        Config
	epoch         string
	key           *seal.Key
	curve         *seal.Curve
	ready         *fleetv1.Ready // with its public part
	host          *supervisor.Supervisor
	swept         bool // nothing of the lives before is left
	control, data *nats.Conn
	closed, asked chan struct{} // asked: to drain
	loops, calls  sync.WaitGroup
	closing       sync.Once
	closeErr      error

	mu       sync.Mutex
	ledger   *ledger
	beats    lease.Beats
	callers  map[string]*caller
	free     int
	line     []*attempt // that wait for a slot, the oldest first
	unread   int        // calls that have ended, and whose results are not taken
	stuck    int        // slots of calls that have a result, and could not be killed
	draining bool
	leaving  bool
	joined   bool // it takes what callers send
	// complaints are those that were logged, of so many messages that were refused.
	complaints map[string]bool
	refused    uint64
	trouble    string // why the last start was refused by its own machine
}

// Open makes the worker's supervisor and joins the fleet. It returns once it could begin
// to connect; it goes on trying until Close.
func Open(ctx context.Context, c Config) (w *Worker, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	w = &Worker{config: c, epoch: rand.Text(), closed: make(chan struct{}), asked: make(chan struct{}), callers: map[string]*caller{}, complaints: map[string]bool{}, beats: lease.Beats{Apart: lease.Apart}}
	for _, key := range c.Callers {
		w.callers[key] = &caller{key: key, attempts: map[uint64]*attempt{}}
	}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) open(ctx context.Context) (err error) {
	if _, err := sandbox.Uptime(); err != nil {
		return err
	}
	if w.key, err = seal.ReadFile(w.config.KeyFile); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; make it with toolhost fleet key %s, or correct the path", err, w.config.KeyFile)
	} else if err != nil {
		return err
	}
	if err := w.makeCurve(); err != nil {
		return err
	}
	if w.ledger, err = openLedger(w.config.Dir, w.epoch); err != nil {
		return err
	}
	// What earlier lives left is ended here, before anybody hears of this one.
	w.config.Supervisor.Admission.Running = cmp.Or(w.config.Supervisor.Admission.Running, w.config.Slots)
	w.config.Supervisor.Ceiling = w.config.Ceilings.Supervisor(w.config.Name)
	if w.host, err = supervisor.New(ctx, w.config.Supervisor); err != nil {
		return err
	}
	w.swept = w.host.Swept()
	if w.config.Slots == 0 {
		w.config.Slots = w.config.Supervisor.Admission.Slots()
	}
	w.free = w.config.Slots
	o := link.Options{URL: w.config.URL, CA: w.config.CA, Key: w.key, Name: w.config.Name, Logger: w.config.Logger, Changed: w.beat, Remedies: w.remedies()}
	if w.control, err = link.Connect(o); err != nil {
		return fmt.Errorf("cannot connect to the fleet's engine: %w", err)
	}
	o.Changed = nil
	if w.data, err = link.Connect(o); err != nil {
		return fmt.Errorf("cannot connect to the fleet's engine: %w", err)
	}
	if _, err := w.control.Subscribe(link.ForWorker(w.config.Name), w.receive); err != nil {
		return fmt.Errorf("cannot take calls: %w", err)
	}
	if _, err := w.control.Subscribe(link.CallerBeats, w.hear); err != nil {
		return fmt.Errorf("cannot hear callers: %w", err)
	}
	// A beat goes behind these on the same connection, so that who hears it is heard.
	w.mu.Lock()
	w.joined = true
	w.mu.Unlock()
	w.loops.Go(w.loop)
	return nil
}

// remedies are for mistakes in how the worker was started.
func (w *Worker) remedies() link.Remedies {
	return link.Remedies{
		Key:    fmt.Sprintf("the engine does not let in the key %s: write it into fleet.workers of the daemon's configuration, and start the daemon again, or give the right one with --key; where the worker was removed, make it another key with toolhost fleet key FILE", w.key.Public()),
		Rights: fmt.Sprintf("the key %s is not that of worker %s: give the --name that the key has in fleet.workers, or the --key of %s", w.key.Public(), w.config.Name, w.config.Name),
		CA:     "give the engine's certificate, or that of its authority, with --ca FILE",
	}
}

// makeCurve makes the key that secrets are sealed for, for this life alone.
func (w *Worker) makeCurve() (err error) {
	if w.curve, err = seal.NewCurve(); err != nil {
		return err
	}
	signature, err := w.key.SignCurve(w.epoch, w.curve.Public())
	w.ready = &fleetv1.Ready{Xkey: w.curve.Public(), Signature: signature}
	return err
}

// Host is the supervisor of the calls.
func (w *Worker) Host() *supervisor.Supervisor { return w.host }

// Key is the worker's public one.
func (w *Worker) Key() string { return w.key.Public() }

// loop beats, and ends what has no lease any more.
func (w *Worker) loop() {
	beat, check := time.NewTicker(beatEvery), time.NewTicker(checkEvery)
	defer beat.Stop()
	defer check.Stop()
	w.beat()
	for {
		select {
		case <-beat.C:
			w.beat()
		case <-check.C:
			w.fence()
		case <-w.closed:
			return
		}
	}
}

// now is the uptime. Where it cannot be read, every lease is over.
func now() time.Duration {
	d, err := sandbox.Uptime()
	if err != nil {
		return 1<<63 - 1
	}
	return d
}

// beat tells all callers that the worker is there.
func (w *Worker) beat() {
	w.mu.Lock()
	if !w.joined {
		w.mu.Unlock()
		return
	}
	b := &fleetv1.Beat{
		Epoch: w.epoch, Number: w.beats.Send(now()), Free: int32(w.free - len(w.line)), Slots: int32(w.config.Slots), Draining: w.draining, Leaving: w.leaving,
		Xkey: w.curve.Public(), Labels: w.config.Labels, LeaseMs: w.config.Lease.Milliseconds(), Version: w.config.Version, Refused: w.refused, Protocol: link.Protocol, Trouble: w.trouble,
	}
	for _, c := range w.callers {
		if !c.hold.Over(now()) {
			b.Hears = append(b.Hears, c.life)
		}
		if c.drained {
			b.Drains = append(b.Drains, c.life)
		}
		if !c.twin.Over(now()) {
			b.Trouble = cmp.Or(b.Trouble, twoOfOneKey+": it is "+c.key)
		}
	}
	w.mu.Unlock()
	if raw, err := proto.Marshal(b); err == nil {
		_ = w.control.Publish(link.WorkerBeat(w.config.Name), raw) // a lost connection is told elsewhere
	}
}

// Load are the calls that run or are prepared, but for those that have a result and could not
// be killed, and those whose results wait.
func (w *Worker) Load() (busy, unread int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config.Slots - w.free - w.stuck, w.unread
}

// DrainAsked is closed when a caller that may drain the worker asks for that, or all callers
// have. It takes no more calls from then on, and is to be drained and closed.
func (w *Worker) DrainAsked() <-chan struct{} { return w.asked }

// drainAsked takes no more calls of a caller. What others have here is not that one's to
// end. It is called while mu is held.
func (w *Worker) drainAsked(c *caller) {
	if c.drained {
		return
	}
	c.drained = true
	w.config.Logger.Info("a caller has asked for no more of its calls", "caller", c.key)
	if !w.draining && w.mayDrain(c) {
		close(w.asked)
		w.drains()
	} else {
		w.turnAway(c)
	}
	go w.beat()
}

// mayDrain says whether nobody's calls are to be taken once this caller has asked.
func (w *Worker) mayDrain(c *caller) bool {
	if slices.Contains(w.config.DrainBy, c.key) {
		return true
	}
	for _, other := range w.callers {
		if !other.drained {
			return false
		}
	}
	return true
}

// drains has the worker take no more calls. The caller holds mu.
func (w *Worker) drains() {
	w.draining = true
	w.turnAway(nil)
}

// turnAway ends the wait of a caller's offers, or of all where that is nil. The caller
// holds mu.
func (w *Worker) turnAway(of *caller) {
	for _, a := range slices.Clone(w.line) {
		if of == nil || a.id.Caller == of.key {
			w.expire(a, &fleetv1.Never{Why: fleetv1.Why_WHY_DRAINING, Detail: "the worker takes no more calls"})
			w.tell(a, start.SayNever)
		}
	}
}

// Drain takes no more calls, and returns when those that there are have ended and their
// results are taken, or ctx ends.
func (w *Worker) Drain(ctx context.Context) error {
	w.mu.Lock()
	w.drains()
	w.mu.Unlock()
	w.beat()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if busy, unread := w.Load(); busy == 0 && unread == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave says goodbye, so that nobody waits for the next beat.
func (w *Worker) leave() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
	w.beat()
}

// closeWait bounds how long Close waits for callers to take the results of calls that it
// ended.
const closeWait = 2 * time.Second

// Close ends all calls, gives their results a little time to be taken, and leaves the
// fleet.
func (w *Worker) Close() error {
	w.closing.Do(func() { w.closeErr = w.close() })
	return w.closeErr
}

func (w *Worker) close() error {
	var errs []error
	if w.host != nil {
		w.mu.Lock()
		w.drains()
		for _, c := range w.callers {
			for _, a := range c.attempts {
				w.expire(a, &fleetv1.Never{Why: fleetv1.Why_WHY_DRAINING, Detail: "the worker ends"})
			}
		}
		w.mu.Unlock()
		errs = append(errs, w.host.Close())
		// Their grace is over by now, and takes none of this time.
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		_ = w.Drain(ctx) // what is not taken by then is lost to its caller, which is told so
		cancel()
	}
	close(w.closed)
	w.loops.Wait()
	w.calls.Wait()
	w.leave()
	for _, conn := range []*nats.Conn{w.control, w.data} {
		if conn != nil {
			_ = link.Close(conn, closeWait)
		}
	}
	w.mu.Lock() // what has come last may still be being taken
	defer w.mu.Unlock()
	for _, c := range w.callers {
		c.drop()
	}
	if w.ledger != nil {
		errs = append(errs, w.ledger.close())
	}
	return errors.Join(errs...)
}
