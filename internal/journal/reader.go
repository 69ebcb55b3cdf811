package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// maxReaderConns bounds how many goroutines a Reader serves at once; others wait.
const maxReaderConns = 4

// Reader reads a journal. It changes nothing but that it brings the database what an owner has left in the redo log as it
// died, if this process may. It never makes its owner wait: while a caller is given an event, no
// lock and no snapshot is held. Its methods may be called from any goroutine.
type Reader struct {
	dir  string
	db   *sql.DB
	file fs.FileInfo   // of the database as it was opened
	gate *sync.RWMutex // of the owner, if that is in this process
	// settle waits until the database has all that was appended.
	settle func()
	// settler is the one of a Reader that has not the owner's process.
	settler *settler
}

// Reader opens the journal for reading in its owner's process. Its log is bounded beside such readers: now and then they
// wait until it has been written to the file.
func (j *Journal) Reader() (*Reader, error) {
	r, err := OpenReader(j.dir)
	if err == nil {
		r.gate, r.settle = &j.readers, j.settle
	}
	return r, err
}

// begin is before each read of one snapshot, and end behind it.
func (r *Reader) begin() (end func()) {
	r.settle()
	r.gate.RLock()
	return r.gate.RUnlock
}

// OpenReader opens the journal in dir for reading, whether it has an owner or not. Without a journal it fails
// with an error that is fs.ErrNotExist. It needs the owner's rights to the files, or root's.
func OpenReader(dir string) (*Reader, error) {
	r, err := openReader(dir, len(migrations))
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal in %s: %w", dir, err)
	}
	return r, nil
}

func openReader(dir string, version int) (_ *Reader, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, gate: new(sync.RWMutex)}
	if r.file, err = os.Lstat(filepath.Join(dir, DatabaseName)); err != nil {
		return nil, err
	}
	if err := errors.Join(checkDir(dir), checkFiles(dir)); err != nil {
		return nil, err
	}
	if r.db, err = sql.Open("sqlite", dsn(dir, "&mode=ro&_query_only=1"+unchanging(dir))); err != nil {
		return nil, err
	}
	r.db.SetMaxOpenConns(maxReaderConns)
	r.settler = &settler{dir: dir, db: r.db}
	r.settle = r.settler.settle
	if err := r.check(version); err != nil {
		return nil, errors.Join(classify(dir, err), r.db.Close())
	}
	return r, nil
}

// unchanging tells SQLite of a database that cannot change, for it makes files beside any other: one without a log, where
// nothing can be written.
func unchanging(dir string) string {
	var disk syscall.Statfs_t
	_, err := os.Lstat(filepath.Join(dir, DatabaseName+"-wal"))
	if errors.Is(err, fs.ErrNotExist) && syscall.Statfs(dir, &disk) == nil && disk.Flags&syscall.MS_RDONLY != 0 {
		return "&immutable=1"
	}
	return ""
}

// check makes sure that this Reader understands the database.
func (r *Reader) check(version int) error {
	id, err := readIdentity(context.Background(), r.db)
	switch {
	case err != nil:
		return err
	case id.fresh():
		return fmt.Errorf("it is empty: its first owner is just beginning, or died then: %w", fs.ErrNotExist)
	}
	if err := id.check(version); err != nil {
		return err
	}
	if oldest := min(version, readable); id.version < int64(oldest) {
		return fmt.Errorf("it has version %d, readers need %d: start its owner once, which brings it up to date", id.version, oldest)
	}
	return nil
}

// readable is the first version that has all that is read: its owner may be an older toolhost.
const readable = 5

// Lacking is why what was read before may lack what the owner had appended last: it takes longer than two seconds to
// bring that to the database, or has died and this process may not do so. It is nil where nothing is missing.
func (r *Reader) Lacking() error {
	r.settler.mu.Lock()
	defer r.settler.mu.Unlock()
	if err := r.settler.lacking; err != nil {
		return fmt.Errorf("what was put on record last in %s may be missing: %w", r.dir, err)
	}
	return nil
}

// Close ends all reading.
func (r *Reader) Close() error { return r.db.Close() }

// A page of events is read at once: at most maxPageEvents, and no further event once it has maxPageBytes. It is held
// for as long as its reader takes for it, and there may be thousands of those.
const (
	maxPageEvents = 128
	maxPageBytes  = 64 << 10
)

// eventColumns are what scanEvents reads; FROM turns t and events e.
const eventColumns = `SELECT e.pos, t.turn_id, e.seq, e.time, e.kind, e.call_id, e.tool, e.json, e.sum `

const turnPage = eventColumns + `FROM turns t CROSS JOIN events e ON e.turn = t.id
	WHERE t.turn_id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`

// Events gives the turn's events with a Seq over after, in order, until there are no more or yield returns false. The
// turn may be going on: events appended meanwhile are given too. It fails with ErrNotFound for an unknown turn, or when
// the turn is pruned while it is read.
func (r *Reader) Events(turnID string, after int64, yield func(Event) bool) error {
	for {
		page, err := r.page(context.Background(), turnPage, turnID, after)
		if err == nil && len(page) == 0 {
			err = r.expectTurn(turnID)
			if err == nil {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("cannot read the events of the turn %q: %w", turnID, err)
		}
		for _, e := range page {
			if !yield(e) {
				return nil
			}
			after = e.Seq
		}
	}
}

// page reads one page of events; args are the query's but the last, its limit.
func (r *Reader) page(ctx context.Context, query string, args ...any) ([]Event, error) {
	defer r.begin()()
	rows, err := r.db.QueryContext(ctx, query, append(args, maxPageEvents)...)
	if err != nil {
		return nil, classify(r.dir, err)
	}
	var page []Event
	bytes := 0
	err = each(rows, func() error {
		var e Event
		var at int64
		var sum sql.NullInt64
		if err := rows.Scan(&e.Pos, &e.TurnID, &e.Seq, &at, &e.Kind, &e.CallID, &e.Tool, &e.JSON, &sum); err != nil {
			return err
		}
		e.Time = fromNano(at)
		if sum.Valid && sum.Int64 != e.sum(e.Pos) {
			return fmt.Errorf("%w: event %d of the turn %q is not as it was appended", ErrCorrupt, e.Seq, e.TurnID)
		}
		page = append(page, e)
		if bytes += len(e.JSON); bytes >= maxPageBytes {
			return errPageFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, classify(r.dir, err)
	}
	return page, nil
}

var errPageFull = errors.New("bug: the end of a page is not an error")

func (r *Reader) expectTurn(turnID string) error {
	defer r.begin()()
	var found bool
	err := r.db.QueryRow("SELECT EXISTS (SELECT 1 FROM turns WHERE turn_id = ?)", turnID).Scan(&found)
	if err != nil {
		return classify(r.dir, err)
	}
	if !found {
		return ErrNotFound
	}
	return nil
}

// Result returns the result of a call as it was appended. It fails with ErrNotFound for an unknown call, and for one
// that has no result, or none yet.
func (r *Reader) Result(turnID, callID string) ([]byte, error) {
	defer r.begin()()
	var result []byte
	var sum sql.NullInt64
	err := r.db.QueryRow(`SELECT r.json, r.sum FROM turns t JOIN calls c ON c.turn = t.id JOIN results r ON r.call = c.id
		WHERE t.turn_id = ? AND c.call_id = ?`, turnID, callID).Scan(&result, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil && sum.Valid && sum.Int64 != rowSum(nil, turnID, callID, string(result)) {
		err = fmt.Errorf("%w: it is not as it was appended", ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the result of the call %q: %w", callID, classify(r.dir, err))
	}
	return result, nil
}
