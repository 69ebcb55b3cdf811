package pack

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// maxHeld bounds the copies of a cache. Who reloads a configuration after each
// change of a pack holds one more each time.
const maxHeld = 64

// Cache holds the packs that a host's calls run from: nobody knows which of
// them a call still needs, so they stay until Close. The zero value is an empty
// one. Its methods may be called from any goroutine.
type Cache struct {
	mu   sync.Mutex
	held []*Opened
}

// Request makes one for the plugin in the pack at r.Tool.Path, after every byte
// has been compared with the pack's manifest. r.SHA256, if set, must be the
// manifest's hash. What came with the binary can be read, and is the working
// directory if r has none. An error is one line.
func (s *Cache) Request(r supervisor.Request) (supervisor.Request, error) {
	path := r.Tool.Path
	opened, err := s.open(path)
	if err != nil {
		return r, err
	}
	if want := r.SHA256; want != "" && want != opened.ManifestSHA256 {
		return r, fmt.Errorf("the manifest of %s has the SHA-256 %s, not %s: it is another pack, or it was changed", path, opened.ManifestSHA256, want)
	}
	r.Tool.Path, r.Tool.Label, r.SHA256 = opened.Binary, path, opened.SHA256
	if len(opened.Manifest.Files) > 1 {
		opened.show(&r)
	}
	return r, nil
}

// show grants the files.
func (o *Opened) show(r *supervisor.Request) {
	policy := supervisor.Policy{}
	if r.Sandbox != nil {
		policy = *r.Sandbox
	}
	policy.Read = append(slices.Clone(policy.Read), o.Dir)
	policy.Allow = append(slices.Clone(policy.Allow), sandbox.SharedUID)
	r.Sandbox = &policy
	r.Dir = cmp.Or(r.Dir, filepath.Clean(o.Dir))
}

// open gives the same pack the same copy. Who opens another one meanwhile waits.
func (s *Cache) open(path string) (*Opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened, err := Open(path)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.held, func(o *Opened) bool { return o.ManifestSHA256 == opened.ManifestSHA256 })
	switch {
	case i >= 0:
		return s.held[i], opened.Close()
	case len(s.held) == maxHeld:
		return nil, errors.Join(fmt.Errorf("cannot open the pack %s: %d others are held for calls: restart toolhost", path, maxHeld), opened.Close())
	}
	s.held = append(s.held, opened)
	return opened, nil
}

// ManifestSHA256 is the hash that pins the held pack whose plugin's executable is at
// binary; empty if that is in none.
func (s *Cache) ManifestSHA256(binary string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, opened := range s.held {
		if opened.Binary == binary {
			return opened.ManifestSHA256
		}
	}
	return ""
}

// Close removes the copies. No call may need them any more.
func (s *Cache) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, opened := range s.held {
		errs = append(errs, opened.Close())
	}
	s.held = nil
	return errors.Join(errs...)
}
