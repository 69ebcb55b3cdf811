package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options of an owner. The zero value is complete.
type Options struct {
	Retention Retention
	// OwnerBytes is how much the turns of an owner may hold, 0 for any: with more, those
	// that have ended are pruned, the oldest first, but for the owner's newest. It must
	// be quick, and is called from any goroutine; nil bounds nobody.
	OwnerBytes func(owner string) int64
	// Ahead has a small Append return as soon as the redo log has it: for an owner that lives long. A turn is
	// appended ahead if its first event was Fresh, or went to the database through this Journal. With less than 16 MiB
	// free on the disk, or 1 MiB that the database lacks, Append waits for the database.
	Ahead bool
	// Now is the clock that retention by age looks at; default time.Now.
	Now func() time.Time
	// Logger gets what Open found and what pruning did; default none.
	Logger hclog.Logger
}

// Journal is the owner's side. Its methods may be called from any goroutine.
type Journal struct {
	dir        string
	report     Report
	unfinished []Unfinished
	lock       *lock

	mu     sync.Mutex // held by whoever writes, for one commit or one step of pruning
	writer *writer
	closed bool

	leading   chan struct{} // held by the one that commits for all who wait
	more      chan struct{} // who leads hands that over to run
	waitingMu sync.Mutex
	waiting   []*request
	large     lane
	ahead     ahead
	queued    chan struct{} // something was appended ahead

	logMu   sync.Mutex   // held while the log is written to the file; before mu
	written atomic.Int64 // how large the log was when it was last written to the file

	readers sync.RWMutex // held by readers of this process while they read

	endCheck context.CancelFunc // of what is checked behind Open
	checking sync.WaitGroup

	prunes   chan chan pruned
	wake     chan struct{} // there is something to prune
	full     chan struct{} // there is much in the log
	quit     chan struct{} // closed by Close
	done     chan struct{} // closed by run when the database is closed
	close    sync.Once
	closeErr error // set before done is closed
}

// Report is what Open found.
type Report struct {
	// Unclean: the last owner, with the pid LastPID (0: unknown), died without Close.
	Unclean bool
	LastPID int
	// Checked: the structure of all of the database was checked, as after an unclean end. The rest of a large one is
	// checked while it is used; where that finds damage, nothing more is written to it, Append answers ErrCorrupt, and
	// the next Open moves it aside.
	Checked bool
	// Missing: the last owner has left a database, which is not there any more.
	Missing bool
	// MovedAside is the path of a database that could not be used, or of its log where that alone was there, or "";
	// Damage is why. Its files are left to the admin: they are never deleted.
	MovedAside string
	Damage     error
}

// Unfinished is a turn that an earlier owner did not end.
type Unfinished struct {
	TurnID  string
	Started time.Time
	NextSeq int64
	Aborted bool // it has a turn_abort
	// OpenCalls are those without a tool_finished or tool_failed, in the order in which they were queued.
	OpenCalls []OpenCall
}

// OpenCall is a call without an end.
type OpenCall struct{ CallID, Tool string }

// Open makes the caller the owner of the journal in dir, which is made (mode 0700) if missing. It fails with ErrOwned
// while there is another owner, with ErrNewer for a database of a newer toolhost, and where others than the user or
// root could write to dir. A damaged database is moved aside and a new one begun: see Report. It is checked by the
// checksums that the last owner left when it closed it, or else its structure is, for less than a second: the rest of a
// large one is checked while it is used.
func Open(dir string, o Options) (*Journal, error) {
	return open(dir, o, migrations)
}

func open(dir string, o Options, steps []string) (*Journal, error) {
	j, err := acquire(dir, o, steps)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal in %s: %w", dir, err)
	}
	go j.run()
	return j, nil
}

func acquire(dir string, o Options, steps []string) (_ *Journal, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	dir, err = PrepareDir(dir)
	if err != nil {
		return nil, err
	}
	l, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release(!l.unclean))
		}
	}()
	if err := checkFiles(dir); err != nil {
		return nil, err
	}
	r, err := awaitRedo(dir, o.Ahead)
	if err != nil {
		return nil, err
	}
	j, err := assemble(dir, o, l, r, steps)
	if errors.Is(err, ErrCorrupt) { // which only shows in use: it is moved aside
		if err = condemn(dir, err); err == nil {
			j, err = assemble(dir, o, l, r, steps)
		}
	}
	switch {
	case err != nil:
		err = errors.Join(err, r.leave())
	case j.ahead.redo == nil:
		_ = r.remove() // the database has what is in it
	}
	return j, err
}

func assemble(dir string, o Options, l *lock, r *redo, steps []string) (*Journal, error) {
	ctx := context.Background()
	d, report, err := openOrReplace(ctx, dir, l.unclean, steps, o.Now())
	if err != nil {
		return nil, err
	}
	report.Unclean, report.LastPID = l.unclean, l.pid
	j := &Journal{
		dir: dir, report: report, lock: l, large: newLane(),
		leading: make(chan struct{}, 1), more: make(chan struct{}, 1), queued: make(chan struct{}, 1), prunes: make(chan chan pruned), wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	if j.writer, err = newWriter(ctx, dir, d, o); err == nil {
		err = errors.Join(j.writer.files.hold(lockName), j.openAhead(r, o.Ahead))
	}
	if err == nil {
		j.unfinished, err = j.writer.findUnfinished(ctx)
	}
	if err == nil {
		err = j.checkUnfinished(len(steps))
	}
	if err == nil {
		err = j.beginCheck(d.rest, len(steps))
	}
	if err != nil {
		return nil, errors.Join(classify(dir, err), d.close())
	}
	j.tell(o.Logger)
	return j, nil
}

func (j *Journal) tell(log hclog.Logger) {
	r := j.report
	if r.Missing {
		log.Warn("the journal's database is missing: began a new one; to go on with the old one, stop the daemon and put it back", "missing", j.dir+"/"+DatabaseName)
	}
	if r.MovedAside != "" {
		log.Error("the journal's database was damaged: moved it aside and began a new one", "moved", r.MovedAside, "damage", r.Damage)
	}
	if r.Unclean {
		log.Warn("the journal's last owner did not close it: checked it", "pid", r.LastPID)
	}
	if len(j.unfinished) > 0 {
		log.Warn("turns were open when the journal's last owner ended", "turns", len(j.unfinished), "oldest", j.unfinished[0].TurnID)
	}
}

// Dir is the journal's directory.
func (j *Journal) Dir() string { return j.dir }

// Report tells what Open found.
func (j *Journal) Report() Report { return j.report }

// Unfinished lists the turns that Open found without a turn_end, oldest first, at most 10,000. They can be appended to:
// the owner should end each, in one Append, with a tool_failed for each open call, a turn_abort of reason error, and
// the turn_end. Until then they are never pruned, and are found again.
func (j *Journal) Unfinished() []Unfinished { return slices.Clone(j.unfinished) }

// Append stores the events, all or none, and then returns: they survive SIGKILL from then on. Each must have its
// turn's next Seq; a gap, a duplicate, an event after the turn_end, a second end of a call are errors that say "bug:".
// Events of several turns may be mixed. Appends of several goroutines share a commit. The slices are read only until
// it returns. With ErrFull nothing is stored and the Journal stays usable.
func (j *Journal) Append(events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	r, err := newRequest(events)
	if err != nil {
		return fmt.Errorf("cannot append to the journal: %w", err)
	}
	if err := j.append(r); err != nil {
		return fmt.Errorf("cannot append to the journal: %w", err)
	}
	return nil
}

// Close waits for what is being appended, closes the database and gives the directory up. Later calls do nothing more.
func (j *Journal) Close() error {
	j.close.Do(func() { close(j.quit) })
	<-j.done
	return j.closeErr
}

// request is one Append on its way to a commit.
type request struct {
	events []Event
	bytes  int64
	reply  chan error
	passed bool // others have gone before it
	// redoEnd is where the redo log goes on behind a request that was appended ahead. Nobody waits for it.
	redoEnd int64
	refused bool // what was appended ahead should not have been
}

func (r *request) ahead() bool { return r.redoEnd > 0 }

func newRequest(events []Event) (*request, error) {
	if len(events) > MaxEvents {
		return nil, fmt.Errorf("%w: %d events at once, over %d", ErrTooLarge, len(events), MaxEvents)
	}
	r := &request{events: events, reply: make(chan error, 1)}
	for i := range events {
		if err := events[i].check(); err != nil {
			return nil, err
		}
		r.bytes += events[i].bytes()
	}
	return r, nil
}
