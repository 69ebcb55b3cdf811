package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

// DefaultMaxBytes bounds a store that is opened without a bound of its own.
const DefaultMaxBytes = 1 << 30

const (
	// keepFor is how long a copy is safe after a use that was written down, more
	// than a call waits for its start unless it is told to.
	keepFor = 2 * time.Minute
	// touchAfter is the age from which a use is written down again. So a copy
	// stays for at least keepFor-touchAfter after each Add, while most Adds
	// write nothing.
	touchAfter = keepFor / 2
	// attempts is how often a file that changes meanwhile is copied.
	attempts = 4

	entryMode = 0o555
)

// Store is a folder of executables. Its methods may be called concurrently. It
// has no goroutines and no open files, and so needs no Close.
type Store struct {
	dir      string
	maxBytes int64
	now      func() time.Time
	copied   func() // for tests: the moment between a copy and the second look at its source

	mu      sync.Mutex
	hashes  map[identity]string
	flights map[identity]*flight
}

// Entry is an executable in the store.
type Entry struct {
	// SHA256 is the hash of the file at Path, in lower-case hex.
	SHA256 string
	// Path is absolute. The file stays for at least a minute after the Add
	// that returned it; a process that runs it, or a mount of it, may outlive
	// the name.
	Path string
}

// flight is one copying, which everyone waits for who wants the same file.
type flight struct {
	done  chan struct{} // closed once entry and err are set
	entry Entry
	err   error
}

// errChanged says that the file is another than it was a moment ago.
var errChanged = errors.New("the file changed while it was read")

// Add makes sure that the store has the executable at path as it is now: a
// regular file, by an absolute path, that we can read. It copies the file
// unless it has seen it before and it has not changed since. The copy has
// neither setuid bits nor file capabilities.
//
// It fails if the file keeps changing, if the file is larger than the store
// may be, and if there is no room because all else was used within the last 2
// minutes.
func (s *Store) Add(path string) (Entry, error) {
	for range attempts {
		entry, err := s.add(path)
		if !errors.Is(err, errChanged) {
			return entry, err
		}
	}
	return Entry{}, fmt.Errorf("cannot take the tool %s: it is being written; wait until its build or copy is complete", path)
}

func (s *Store) add(path string) (Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Entry{}, fmt.Errorf("cannot look at the tool %s: %w", path, text.Cause(err))
	}
	id := identify(info)
	if entry, ok := s.known(id); ok {
		return entry, nil
	}
	return s.share(id, func() (Entry, error) { return s.take(path, id) })
}

// share lets one of the concurrent callers with the same id do the work. That
// work may have begun before the call, but a change since would have changed
// the id: see settle.
func (s *Store) share(id identity, work func() (Entry, error)) (Entry, error) {
	s.mu.Lock()
	f, running := s.flights[id]
	if !running {
		f = &flight{done: make(chan struct{})}
		s.flights[id] = f
	}
	s.mu.Unlock()
	if running {
		<-f.done
		return f.entry, f.err
	}
	defer func() {
		s.mu.Lock()
		delete(s.flights, id)
		s.mu.Unlock()
		close(f.done)
	}()
	f.err = errors.New("bug: copying a tool panicked")
	f.entry, f.err = work()
	return f.entry, f.err
}

// known finds the copy of a file that was copied before.
func (s *Store) known(id identity) (Entry, bool) {
	if !id.settled(s.now()) {
		return Entry{}, false
	}
	hash, ok := s.recall(id)
	if !ok {
		return Entry{}, false
	}
	entry := s.entry(hash)
	return entry, s.use(entry, id.size)
}

func (s *Store) entry(hash string) Entry {
	return Entry{SHA256: hash, Path: filepath.Join(s.dir, hash)}
}

// use says whether the store has a sound copy, which is then safe from
// eviction for keepFor-touchAfter.
func (s *Store) use(entry Entry, size int64) bool {
	lastUse, ok := check(entry, size)
	if !ok {
		return false
	}
	if s.age(lastUse) < touchAfter {
		return true
	}
	unlock, err := s.lock()
	if err != nil {
		return false
	}
	defer unlock()
	return s.touch(entry, size)
}

// touch is use under the lock.
func (s *Store) touch(entry Entry, size int64) bool {
	if _, ok := check(entry, size); !ok {
		return false
	}
	now := s.now()
	return os.Chtimes(entry.Path, now, now) == nil
}

// check tells a copy from what a crash may have left. It does not read it: the
// bytes were on disk before the name was (see publish), and only we could have
// changed them.
func check(entry Entry, size int64) (lastUse time.Time, ok bool) {
	info, err := os.Lstat(entry.Path)
	if err != nil {
		return time.Time{}, false
	}
	ok = info.Mode() == entryMode && info.Size() == size && owner(info) == os.Geteuid() // a regular file has no type bits
	return info.ModTime(), ok
}

// age is the time since t. A time in the future is as good as none: it comes
// from a clock that was wrong, and must not keep a copy for ever.
func (s *Store) age(t time.Time) time.Duration {
	if age := s.now().Sub(t); age > -time.Minute {
		return age
	}
	return math.MaxInt64
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func isHash(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 32
}
