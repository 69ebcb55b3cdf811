package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// The load test has worker processes, each with a supervisor of its own, make sandboxed
// calls that sleep: at random times, and as many as keep a part of all slots busy. The same
// calls go to a queue group of NATS with as many members and slots, which only sleep.
const (
	loadWorkers = 48
	loadSlots   = 4
	loadMean    = 4 * time.Second // how long a call sleeps, which is exponentially distributed
	loadFor     = time.Minute
	loadSettle  = 10 * time.Second // what begins before is not looked at
)

// load is one run.
type load struct {
	w     *world
	group *queueGroup
	calls sync.WaitGroup

	mu     sync.Mutex
	waits  []time.Duration
	failed map[string]int
}

func exponential(mean time.Duration) time.Duration {
	return min(time.Duration(rand.ExpFloat64()*float64(mean)), 8*mean)
}

// call makes one in the fleet and one in the queue group.
func (l *load) call(takes time.Duration, looked bool) {
	l.group.call(takes, looked)
	l.calls.Go(func() {
		r := supervisor.Request{Command: &supervisor.Command{Argv: []string{"sleep", fmt.Sprintf("%.3f", takes.Seconds())}}, Timeout: time.Hour}
		got := l.w.fleet.Call(l.w.t.Context(), r)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case !got.OK():
			l.failed[string(got.Status)+": "+got.Message]++
		case looked:
			l.waits = append(l.waits, time.Duration(got.Timing.QueueMs)*time.Millisecond)
		}
	})
}

// run makes calls that keep a part of all slots busy, and returns how many were.
func (l *load) run(part float64) (used float64) {
	const slots = loadWorkers * loadSlots
	for range int(part * slots) { // as if it had gone on for long
		l.call(exponential(loadMean), false)
	}
	var samples, busy int
	next := time.Now()
	for began := next; next.Sub(began) < loadFor; {
		next = next.Add(exponential(time.Duration(float64(loadMean) / part / slots)))
		time.Sleep(time.Until(next))
		settled := next.Sub(began) > loadSettle
		l.call(exponential(loadMean), settled)
		if settled {
			samples++
			for _, w := range l.w.fleet.Workers() {
				busy += w.Slots - w.Free
			}
		}
	}
	l.calls.Wait()
	l.group.calls.Wait()
	return float64(busy) / float64(samples) / slots
}

// queueGroup are members that take calls at random, and make them in their order.
type queueGroup struct {
	t     testing.TB
	conn  *nats.Conn
	calls sync.WaitGroup

	mu    sync.Mutex
	sent  map[string]time.Time // those that are looked at
	waits []time.Duration
}

func newQueueGroup(t testing.TB) *queueGroup {
	t.Helper()
	s := plainServer(t, &server.Options{})
	q := &queueGroup{t: t, conn: dialPlain(t, s), sent: map[string]time.Time{}}
	for range loadWorkers {
		line := make(chan *nats.Msg, 1000)
		if _, err := dialPlain(t, s).ChanQueueSubscribe("calls.*", "workers", line); err != nil {
			t.Fatal(err)
		}
		for range loadSlots {
			go q.serve(line)
		}
	}
	return q
}

func (q *queueGroup) call(takes time.Duration, looked bool) {
	q.calls.Add(1)
	id := nats.NewInbox()
	if looked {
		q.mu.Lock()
		q.sent[id] = time.Now()
		q.mu.Unlock()
	}
	if err := q.conn.PublishRequest("calls.any", id, strconv.AppendInt(nil, int64(takes), 10)); err != nil {
		q.t.Error(err)
	}
}

func (q *queueGroup) serve(line <-chan *nats.Msg) {
	for m := range line {
		q.mu.Lock()
		if sent, looked := q.sent[m.Reply]; looked {
			q.waits = append(q.waits, time.Since(sent))
		}
		q.mu.Unlock()
		takes, _ := strconv.ParseInt(string(m.Data), 10, 64)
		time.Sleep(time.Duration(takes))
		q.calls.Done()
	}
}

func percentile(of []time.Duration, p int) time.Duration {
	slices.Sort(of)
	return of[len(of)*p/100].Round(time.Millisecond)
}

func TestFleetLoad(t *testing.T) {
	stage.Of(t, "fleet-load")
	var names []string
	for i := range loadWorkers {
		names = append(names, fmt.Sprintf("w%d", i+1))
	}
	w := newWorld(t, names...)
	for _, name := range names {
		w.processOf(settings{Name: name, Slots: loadSlots})
	}
	for _, part := range []float64{0.85, 0.95} {
		l := &load{w: w, group: newQueueGroup(t), failed: map[string]int{}}
		used := l.run(part)
		t.Logf("load %.0f%%, %d calls: wait p50 %s, p90 %s, p99 %s; %.1f%% of slots used; failed %v", part*100, len(l.waits),
			percentile(l.waits, 50), percentile(l.waits, 90), percentile(l.waits, 99), used*100, l.failed)
		t.Logf("a queue group: wait p50 %s, p90 %s, p99 %s", percentile(l.group.waits, 50), percentile(l.group.waits, 90), percentile(l.group.waits, 99))
		l.judge(part, used)
	}
}

// judge wants at 85% few to wait, and a queue group to be far behind; at 95% few slots to be
// unused.
func (l *load) judge(part, used float64) {
	ours, theirs := percentile(l.waits, 99), percentile(l.group.waits, 99)
	switch {
	case len(l.failed) > 0:
		l.w.t.Errorf("calls have failed: %v", l.failed)
	case part < 0.9 && ours > 100*time.Millisecond:
		l.w.t.Errorf("p99 of the wait is %s", ours)
	case part < 0.9 && theirs < 20*ours:
		l.w.t.Errorf("p99 of the wait is %s, that of a queue group %s", ours, theirs)
	case part > 0.9 && used < 0.9:
		l.w.t.Errorf("%.1f%% of the slots are used", used*100)
	}
}
