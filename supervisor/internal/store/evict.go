package store

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// stored is a copy as eviction sees it.
type stored struct {
	name  string
	bytes int64
	idle  time.Duration
}

// makeRoom removes what was not used for longest until a copy of this size
// fits, or fails without removing anything. The caller has the lock.
func (s *Store) makeRoom(entry Entry, size int64) error {
	all, err := s.stored(entry.SHA256)
	if err != nil {
		return err
	}
	victims, missing := s.victims(all, size)
	if missing > 0 {
		return &FolderError{fmt.Errorf("cannot take a tool of %d bytes: the store %s may have %d, and what else is there was used in the last %v; raise the bound by %d, or wait",
			size, s.dir, s.maxBytes, keepFor, missing)}
	}
	for _, victim := range victims {
		if err := os.Remove(filepath.Join(s.dir, victim)); err != nil {
			return s.explain("remove a file", err)
		}
	}
	if len(victims) > 0 {
		s.dropIdentities(dangles)
	}
	return nil
}

// victims are the names of those that must go to make room for size more
// bytes; missing is what then still lacks.
func (s *Store) victims(all []stored, size int64) (names []string, missing int64) {
	missing = onDisk(size) - s.maxBytes
	for _, e := range all {
		missing += e.bytes
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(b.idle, a.idle) })
	for _, e := range all {
		if missing <= 0 || e.idle < keepFor {
			break
		}
		names = append(names, e.name)
		missing -= e.bytes
	}
	return names, missing
}

// stored lists the copies except the one that is replaced.
func (s *Store) stored(except string) ([]stored, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, s.explain("list the files", err)
	}
	var all []stored
	for _, entry := range entries {
		if entry.Name() == except || !isHash(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, s.explain("look at a file", err)
		}
		all = append(all, stored{name: entry.Name(), bytes: onDisk(info.Size()), idle: s.age(info.ModTime())})
	}
	return all, nil
}

// onDisk counts whole blocks, so that the number of copies is bounded, too.
func onDisk(bytes int64) int64 {
	const block = 4096
	return (bytes + block - 1) / block * block
}
