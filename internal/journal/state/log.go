package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
)

// Log reads all journals below a folder, beside their owners. Its methods may
// be called from any goroutine.
type Log struct {
	dir     string
	readers []reader
	// Unreadable says why journals are left out.
	Unreadable []error

	mu      sync.Mutex
	damaged map[string]error // what was found as they were read, by their folders
}

// reader is that of the journal in dir.
type reader struct {
	*journal.Reader
	dir string
}

// OpenLog opens what there is in dir. It fails if that is nothing, or if none of
// it can be read.
func OpenLog(dir string) (*Log, error) {
	dirs, err := journals(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journals in %s: %w", dir, err)
	}
	l := &Log{dir: dir, damaged: map[string]error{}}
	for _, one := range dirs {
		r, err := journal.OpenReader(one)
		switch {
		case err == nil:
			l.readers = append(l.readers, reader{r, one})
		case !errors.Is(err, fs.ErrNotExist):
			l.Unreadable = append(l.Unreadable, err)
		}
	}
	switch {
	case len(l.readers) > 0:
		return l, nil
	case len(l.Unreadable) > 0:
		return nil, errors.Join(l.Unreadable...)
	}
	return nil, noJournal(dir)
}

func noJournal(dir string) error {
	return fmt.Errorf("there is no journal in %s: run a turn that keeps one there, or name another folder with --state: %w", dir, fs.ErrNotExist)
}

// journals are the folders below dir that may hold one.
func journals(dir string) ([]string, error) {
	dirs, err := slots(filepath.Join(dir, commandsDir))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	if _, err := os.Lstat(filepath.Join(dir, journal.DatabaseName)); err == nil {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs, nil
}

// Close ends all reading.
func (l *Log) Close() error {
	var errs []error
	for _, r := range l.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Lacking is why something may be missing in what was read, for each journal as
// [journal.Reader.Lacking], or since it is damaged.
func (l *Log) Lacking() (why []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.readers {
		if err := cmp.Or(l.damaged[r.dir], r.Lacking()); err != nil {
			why = append(why, err)
		}
	}
	return why
}

// each has all journals read, until done says so. A damaged one does not hide what the
// others have; wrong is the damage of those that were passed over.
func (l *Log) each(read func(*journal.Reader) (done bool, err error)) (wrong, err error) {
	for _, r := range l.readers {
		done, err := read(r.Reader)
		if errors.Is(err, journal.ErrCorrupt) {
			err = fmt.Errorf("cannot read all of the journal in %s: %w", r.dir, err)
			l.mu.Lock()
			l.damaged[r.dir] = err
			l.mu.Unlock()
			wrong = errors.Join(wrong, err)
			continue
		}
		if done || err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

// Turns lists turns, the last started first.
func (l *Log) Turns(f api.Filter) ([]api.TurnSummary, error) {
	turns, intact := []api.TurnSummary{}, 0
	wrong, err := l.each(func(r *journal.Reader) (bool, error) {
		some, err := r.Turns(f)
		if err == nil {
			intact++
			turns = append(turns, some...)
		}
		return false, err
	})
	if intact == 0 {
		err = cmp.Or(err, wrong)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(turns, func(a, b api.TurnSummary) int { return b.Started.Compare(a.Started) })
	return turns[:min(len(turns), journal.Count(f))], nil
}

// Events gives a turn's events as [journal.Reader.Events] does.
func (l *Log) Events(turnID string, after int64, yield func(journal.Event) bool) error {
	return l.find(turnID, func(r *journal.Reader) error { return r.Events(turnID, after, yield) })
}

// Result gives a call's result as [journal.Reader.Result] does.
func (l *Log) Result(turnID, callID string) (result []byte, err error) {
	err = l.find(turnID, func(r *journal.Reader) (err error) {
		result, err = r.Result(turnID, callID)
		return err
	})
	if errors.Is(err, journal.ErrNotFound) {
		return nil, l.noResult(turnID, callID)
	}
	return result, err
}

// noResult says what is missing: the turn, the call or only its result.
func (l *Log) noResult(turnID, callID string) error {
	known := false
	err := l.Events(turnID, 0, func(e journal.Event) bool {
		known = callID != "" && e.CallID == callID
		return !known
	})
	switch {
	case err != nil:
		return err
	case known:
		return fmt.Errorf("the call %q of the turn %q has no result: it has not ended, or had none: %w", callID, turnID, journal.ErrNotFound)
	}
	return fmt.Errorf("the turn %q has no call %q: toolhost log %s shows its calls: %w", turnID, callID, turnID, journal.ErrNotFound)
}

// find tries the journals until one has the turn. If none has it, a damaged one may.
func (l *Log) find(turnID string, try func(*journal.Reader) error) error {
	found := false
	wrong, err := l.each(func(r *journal.Reader) (bool, error) {
		err := try(r)
		if errors.Is(err, journal.ErrNotFound) {
			return false, nil
		}
		found = err == nil
		return true, err
	})
	if found || err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	return fmt.Errorf("there is no turn %q in the journals in %s, or no more since it was pruned: %w", turnID, l.dir, journal.ErrNotFound)
}

// lookEvery is how often Follow looks for journals that are new.
const lookEvery = 500 * time.Millisecond

// Follow gives events as [journal.Reader.Follow] does, also of journals that
// begin meanwhile; those of different journals in the order in which they are
// found. Of o, TurnID and Last count. It fails with ErrNotFound for a turn that
// is in no journal.
func (l *Log) Follow(ctx context.Context, o journal.FollowOptions, yield func(journal.Event) bool) error {
	if o.TurnID != "" { // what is not there yet has an id that nobody knows
		if err := l.Events(o.TurnID, 0, func(journal.Event) bool { return false }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := follower{options: o, cancel: cancel, yield: yield}
	defer f.running.Wait()
	defer cancel(nil)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for first := true; ; first = false {
		dirs, err := journals(l.dir)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			f.follow(ctx, dir, first)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errFollowed) {
				return cause
			}
			return nil
		}
	}
}

// errFollowed ends all followers when one has seen the end of it.
var errFollowed = errors.New("bug: the end of following is not an error")

type follower struct {
	options journal.FollowOptions
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu       sync.Mutex
	yield    func(journal.Event) bool
	followed map[string]bool
}

// follow begins to follow a journal, unless it does already.
func (f *follower) follow(ctx context.Context, dir string, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed[dir] {
		return
	}
	r, err := journal.OpenReader(dir)
	if err != nil {
		return // it is just beginning, or is told of in Unreadable
	}
	if f.followed == nil {
		f.followed = map[string]bool{}
	}
	f.followed[dir] = true
	o := f.options
	o.Last = o.Last && first // what is in a new journal is new
	f.running.Go(func() {
		err := errors.Join(r.Follow(ctx, o, f.give), r.Close())
		switch {
		case errors.Is(err, journal.ErrReplaced):
			f.forget(dir)
		case err == nil:
			f.cancel(errFollowed)
		default:
			f.cancel(err)
		}
	})
}

func (f *follower) forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followed, dir)
}

func (f *follower) give(e journal.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.yield(e)
}
