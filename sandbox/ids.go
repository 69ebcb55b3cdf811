package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
)

// maxSlots bounds how many calls can have a user of their own at once, over
// all hosts that share a range.
const maxSlots = 4096

// firstSlots bounds where hosts begin to look for a free user: each by its pid, so that
// few ask for one that another host has.
const firstSlots = 1024

// rootBase begins the ids that root gives to calls where it may use any. It
// lies in what systemd's documentation (UIDS-GIDS) leaves unused.
const rootBase = 0x71000000

// idRange is what calls' users are taken from. Outside is the first id as the
// initial user namespace sees it, inside as the zygote does; the same numbers
// are used for groups.
type idRange struct {
	outsideUID, outsideGID, inside, count int
}

// slot is one user that nobody else has while its file is locked.
type slot struct {
	number int
	lock   *os.File // also held by the launcher, so until both are gone
}

// slots hands out users. A slot stays locked for this host once it has had it.
type slots struct {
	dir  string
	ids  idRange
	mu   sync.Mutex
	free []slot
	next int
	over bool
}

var errNoSlot = errors.New("all users for sandboxed calls are taken: let calls end, or allow fewer at once")

// take returns a slot that no other call, of any host, has.
func (s *slots) take() (slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		got := s.free[n-1]
		s.free = s.free[:n-1]
		return got, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return slot{}, fmt.Errorf("cannot make the folder of users %s: %w", s.dir, text.Cause(err))
	}
	for range s.ids.count { // from the start again too: others let go of theirs
		number := s.next % s.ids.count
		s.next = number + 1
		lock, err := lockSlot(filepath.Join(s.dir, strconv.Itoa(s.ids.outsideUID+number)))
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil && inUse(s.ids.outsideUID+number) {
			_ = lock.Close()
			continue
		}
		return slot{number, lock}, err
	}
	return slot{}, errNoSlot
}

// inUse says whether a process has the user: of a dead host's call, its lock
// may be gone before its last process is.
func inUse(uid int) bool {
	_, err := unix.Getpriority(unix.PRIO_USER, uid)
	return !errors.Is(err, unix.ESRCH)
}

func lockSlot(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the user's lock %s: %w", path, text.Cause(err))
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// give returns a slot whose processes are gone.
func (s *slots) give(got slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = got.lock.Close()
		return
	}
	s.free = append(s.free, got)
}

// close gives up those that are free, and later each that is given back.
func (s *slots) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, got := range s.free {
		_ = got.lock.Close()
	}
	s.free, s.over = nil, true
}

// rootRange picks the ids that a privileged host gives to calls: beyond all
// that are in use by convention, or, in a container, the last that it has.
func rootRange(uidMap string) (idRange, error) {
	var start, count int
	for line := range strings.Lines(uidMap) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err != nil {
			return idRange{}, fmt.Errorf("cannot read /proc/self/uid_map line %q: %w", line, err)
		}
		if inside <= rootBase && inside+n >= rootBase+maxSlots {
			return idRange{rootBase, rootBase, rootBase, maxSlots}, nil
		}
		if n > count {
			start, count = inside, n
		}
	}
	// 65534 is nobody, and low numbers are real users.
	const low, spare = 1000, 1024
	if count < low+spare+16 {
		return idRange{}, fmt.Errorf("this user namespace has %d ids: map at least %d into it", count, low+spare+16)
	}
	n := min(maxSlots, count-low-spare)
	first := start + count - spare - n
	return idRange{first, first, first, n}, nil
}
