package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/toolhost/toolhost/turn"
)

// What callers branch on.
var (
	// ErrFull: the disk, or the quota on it, has no room. Nothing of the failed Append was stored; once there is room
	// again the same Append works.
	ErrFull = errors.New("no room for the journal")
	// ErrOwned: another process, or another Journal of this one, owns the directory.
	ErrOwned = errors.New("the journal has an owner already")
	// ErrCorrupt: the database is damaged. The next Open checks all of it and moves it aside.
	ErrCorrupt = errors.New("the journal's database is damaged")
	// ErrNewer: a newer toolhost wrote the database.
	ErrNewer = errors.New("the journal is of a newer version")
	// ErrTurnTaken: a turn is to begin under the id of one that is on record.
	ErrTurnTaken = turn.ErrTaken
	// ErrTooLarge: an event, result or id is over its limit.
	ErrTooLarge = errors.New("too large for the journal")
	// ErrClosed: the Journal was closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrNotFound: there is no such turn or result, or no more since it was pruned.
	ErrNotFound = errors.New("not in the journal")
	// ErrReplaced: the database was moved aside for a new one while it was followed.
	ErrReplaced = errors.New("the journal was replaced by a new one: open it again")
)

// classify adds ErrFull or ErrCorrupt where err from SQLite, about the database in dir, means that.
func classify(dir string, err error) error {
	failure, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		// SQLite knows only ENOSPC on write as full: neither a quota, nor other calls.
		if noRoom(dir) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	return err
}

// refusal is why an event may not come next.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refused says whether an error is about a request, which will not be stored later either.
func refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok || errors.Is(err, ErrTurnTaken)
}

// taken adds ErrTurnTaken where a turn's row cannot be added for its name.
func taken(turn string, err error) error {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok && failure.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return fmt.Errorf("%w: %q", ErrTurnTaken, turn)
	}
	return err
}

const probeBytes = 64 << 10

// noRoom tries whether a file in dir can grow.
func noRoom(dir string) bool {
	f, err := os.CreateTemp(dir, "journal.probe-*")
	if err != nil {
		return isFull(err)
	}
	_, err = f.Write(make([]byte, probeBytes))
	err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	return isFull(err)
}

func isFull(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT}, func(full error) bool { return errors.Is(err, full) })
}
