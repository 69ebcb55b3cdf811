package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// settledAfter is the age of its last change from which a file's identity
	// is trusted. A change sets the ctime to the clock of the last kernel tick
	// (up to 10 ms ago), so two changes within a tick may leave the same
	// ctime: an identity that is read between them would stand for both. Some
	// file systems keep whole seconds only.
	settledAfter = time.Second
	// tick is more than the longest kernel tick.
	tick = 20 * time.Millisecond

	maxIdentities = 1024
)

// identity changes whenever a file's content does: only root can set back a
// file's ctime, by setting the clock (inode(7)). What it does not see: writes
// through a shared mapping of a page that is still dirty, and changes on file
// systems whose servers make up the times (FUSE).
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns since 1970
}

func identify(info fs.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size,
		mtime: syscall.TimespecToNsec(st.Mtim), ctime: syscall.TimespecToNsec(st.Ctim),
	}
}

func (id identity) String() string {
	return fmt.Sprintf("%d-%d-%d-%d-%d", id.dev, id.ino, id.size, id.mtime, id.ctime)
}

// settled says whether a change now would change the identity.
func (id identity) settled(now time.Time) bool { return id.age(now) >= settledAfter }

func (id identity) age(now time.Time) time.Duration { return now.Sub(time.Unix(0, id.ctime)) }

// settle waits until a change of the file gets a new ctime, so that one in the
// midst of copying is seen.
func (id identity) settle(now time.Time) {
	if age := id.age(now); age >= 0 && age < tick {
		time.Sleep(tick - age)
	}
}

// recall finds the hash of a file with this identity, in memory or on disk.
func (s *Store) recall(id identity) (string, bool) {
	s.mu.Lock()
	hash, ok := s.hashes[id]
	s.mu.Unlock()
	if ok {
		return hash, true
	}
	target, err := os.Readlink(s.identityPath(id))
	if err != nil {
		return "", false
	}
	hash, ok = strings.CutPrefix(target, "../")
	if !ok || !isHash(hash) {
		return "", false
	}
	s.remember(id, hash)
	return hash, true
}

func (s *Store) remember(id identity, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hashes) >= maxIdentities {
		clear(s.hashes)
	}
	s.hashes[id] = hash
}

// record remembers an identity also on disk, for other processes. It is a
// symbolic link because that is made in one step, with its content: no crash
// leaves half of it. A failure costs the next process one copying and is not
// reported.
func (s *Store) record(id identity, hash string) {
	s.remember(id, hash)
	s.boundIdentities()
	path := s.identityPath(id)
	_ = os.Remove(path)
	_ = os.Symlink("../"+hash, path)
}

func (s *Store) identityPath(id identity) string {
	return filepath.Join(s.dir, identities, id.String())
}

// boundIdentities makes room for one more: first it removes those whose copies
// are gone, then, if there are still too many, all.
func (s *Store) boundIdentities() {
	if len(s.identityNames()) < maxIdentities {
		return
	}
	s.dropIdentities(dangles)
	if len(s.identityNames()) >= maxIdentities {
		s.dropIdentities(func(string) bool { return true })
	}
}

// dangles says whether an identity's copy is gone.
func dangles(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}

func (s *Store) dropIdentities(drop func(path string) bool) {
	for _, name := range s.identityNames() {
		if path := filepath.Join(s.dir, identities, name); drop(path) {
			_ = os.Remove(path)
		}
	}
}

func (s *Store) identityNames() []string {
	dir, err := os.Open(filepath.Join(s.dir, identities))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}
