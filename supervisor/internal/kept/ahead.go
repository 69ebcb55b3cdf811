package kept

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Source is how processes are made that no call has asked for.
type Source struct {
	// Prepare says what the process of such a request would be, which is to be closed,
	// or why none can be started before its call.
	Prepare func(context.Context, spec.Request) (*prepare.Prepared, error)
	// Start makes it and has it answer once. spawned comes as soon as it exists: from
	// then on it is the caller's to end, whatever is returned.
	Start func(ctx context.Context, p *prepare.Prepared, l process.Listener, spawned func(*process.Process)) error
	// Starting says that calls are being started, Busy that no CPU is free.
	Starting, Busy func() bool
	Budget         spec.PrestartBudget
	Logger         hclog.Logger
}

// ahead has processes started before their calls: so many for each stock, within the
// budget. One goroutine does that, one process at a time, once there is something to
// start (refill.go).
type ahead struct {
	Source
	pool  *Pool
	begun sync.Once
	wakes chan struct{} // has room for one
	stop  context.Context
	end   context.CancelFunc
	over  chan struct{} // closed when the goroutine has ended

	taken, missed, died atomic.Int64

	mu       sync.Mutex
	stocks   map[*Line]*stock
	declared []*declaration
	doubt    bool // a declared request may have come to mean another process
	fewer    bool // the declared requests are others, which may want fewer
	closed   bool
}

// stock is a line that is to have processes parked.
type stock struct {
	line    *Line
	request spec.Request
	want    int
	fixed   bool      // a declaration's, so that it stays without calls
	used    time.Time // when a call asked for one
	failed  int       // starts, and parked processes, since one was taken
	rest    time.Time // no start before
	memory  int64     // of the one that was looked at last
}

// declaration is a request that is to have processes whether there are calls or not.
type declaration struct {
	request spec.Request
	problem string // why it has none, as was logged last
}

func newAhead(p *Pool, source Source) *ahead {
	a := &ahead{pool: p, Source: source, wakes: make(chan struct{}, 1), over: make(chan struct{}), stocks: map[*Line]*stock{}}
	a.stop, a.end = context.WithCancel(context.Background())
	return a
}

// Parked are the processes that wait for a call each.
type Parked struct {
	// Processes wait, and had so many MemoryBytes together when they were looked at.
	Processes   int
	MemoryBytes int64
	// Taken is how many calls have had one, Missed how many found none; Died is how
	// many ended while they were parked.
	Taken, Missed, Died int64
	Stocks              []Stock
}

// Stock is what is parked for one tool.
type Stock struct {
	Name          string
	Want, Waiting int
}

// Parked says what waits at present.
func (p *Pool) Parked() Parked {
	a := p.ahead
	all := Parked{Taken: a.taken.Load(), Missed: a.missed.Load(), Died: a.died.Load()}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stocks {
		all.Processes += s.waiting()
		all.MemoryBytes += int64(s.waiting()) * s.memory
		all.Stocks = append(all.Stocks, Stock{Name: s.request.ToolName(), Want: s.want, Waiting: s.waiting()})
	}
	slices.SortFunc(all.Stocks, func(a, b Stock) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s *stock) waiting() int { return int(s.line.waiting.Load()) }

// Ahead is the line of a call that may have a process which was started before it;
// nil if there is to be none. The call must Part from it.
func (p *Pool) Ahead(call *prepare.Prepared) *Line {
	if p.ahead.Budget.Processes <= 0 {
		return nil
	}
	l, err := p.join(aheadOf(call), Key{}, spec.Keep{Once: true})
	if err != nil {
		return nil
	}
	p.ahead.stock(l, call.Request, false)
	return l
}

// aheadOf tells these lines from all others.
func aheadOf(p *prepare.Prepared) string { return aheadPrefix + KeyOf(p).sum() }

const aheadPrefix = "ahead "

// Declare has processes started for these requests, now and whenever one was taken,
// and ends those of requests that had been declared, and no longer are.
func (p *Pool) Declare(requests []spec.Request) {
	a := p.ahead
	if a.Budget.Processes <= 0 {
		return
	}
	a.mu.Lock()
	a.declared, a.doubt, a.fewer = nil, true, true
	for _, r := range requests {
		a.declared = append(a.declared, &declaration{request: r.Ahead()})
	}
	a.mu.Unlock()
	a.wake()
}

// stock notes that a line is to have processes, and is in use.
func (a *ahead) stock(l *Line, request spec.Request, fixed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stocks[l]
	if s == nil {
		if a.closed || len(a.stocks) >= a.Budget.Processes && !a.giveUp() {
			return
		}
		s = &stock{line: l, request: request.Ahead()}
		l.hold()
		a.stocks[l] = s
	}
	s.want, s.used = min(max(s.want, request.Prestart), a.Budget.Processes), time.Now()
	s.fixed = s.fixed || fixed
}

// giveUp drops a stock for another: that which was not used for longest, of those that
// nobody has declared. The caller has locked.
func (a *ahead) giveUp() bool {
	oldest := a.oldest(func(s *stock) bool { return !s.fixed })
	if oldest != nil {
		a.drop(oldest)
	}
	return oldest != nil
}

func (a *ahead) oldest(of func(*stock) bool) (oldest *stock) {
	for _, s := range a.stocks {
		if of(s) && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	return oldest
}

// drop ends what is parked in a line. The caller has locked.
func (a *ahead) drop(s *stock) {
	delete(a.stocks, s.line)
	a.pool.tasks.Run("end parked processes", func() {
		s.line.ask(s.line.drain)
		s.line.unhold()
	})
}

// dropAll drops those that are meant.
func (a *ahead) dropAll(of func(*stock) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stocks {
		if of(s) {
			a.drop(s)
		}
	}
}

// asked notes that a call wanted one.
func (a *ahead) asked(l *Line, got bool) {
	count := &a.missed
	if got {
		count = &a.taken
	}
	count.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stocks[l]
	if s != nil && got {
		s.failed = 0
	}
	a.doubt = a.doubt || !got && len(a.declared) > 0
	a.wake()
}

// lost notes one that has ended while it was parked.
func (a *ahead) lost(l *Line) {
	a.died.Add(1)
	a.fail(l)
	a.wake()
}

// fail has the next start of a line wait: from firstRetry on twice as long each time,
// at most lastRetry.
func (a *ahead) fail(l *Line) (before int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stocks[l]
	if s == nil {
		return 0
	}
	s.rest = time.Now().Add(min(firstRetry<<min(s.failed, maxDoublings), lastRetry))
	s.failed++
	return s.failed - 1
}

const (
	firstRetry, lastRetry = time.Second, 5 * time.Minute
	maxDoublings          = 16
)

func (a *ahead) wake() {
	a.begun.Do(func() { a.pool.tasks.Run("start processes before their calls", a.run) })
	select {
	case a.wakes <- struct{}{}:
	default: // it will look anyway
	}
}

// close ends the starts, and what is parked.
func (a *ahead) close() {
	a.end()
	a.begun.Do(func() { close(a.over) })
	<-a.over
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.dropAll(func(*stock) bool { return true })
}
