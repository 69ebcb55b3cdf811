package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Share bounds several groups together. Groups with an equal Share, limits included,
// are below one directory, which is made for the first of them and removed with the
// last. The zero value sets no bounds.
type Share struct {
	// Name identifies the owner of the groups.
	Name string
	// Limits apply to all groups of the Share together. Fields other than MemoryBytes, Pids
	// and CPUPercent are ignored. A group's own CPUPercent is not more than that of its
	// Share. On OOM one group dies, not all.
	Limits Limits
}

const (
	sharePrefix  = "s-"
	maxShareName = 64 // of its name, what a directory's has
)

// CheckShare returns an error if this host cannot enforce the limits of a Share.
func (r *Root) CheckShare(s Share) error {
	if _, err := r.plan(s.bounds()); err != nil {
		return fmt.Errorf("limits of %q together: %w", s.Name, err)
	}
	return nil
}

func (s Share) bounds() Limits {
	return Limits{MemoryBytes: s.Limits.MemoryBytes, Pids: s.Limits.Pids, CPUPercent: s.Limits.CPUPercent}
}

// empty: it bounds nothing, so that it needs no directory.
func (s Share) empty() bool {
	return s.Limits.MemoryBytes == 0 && s.Limits.Pids == 0 && s.Limits.CPUPercent == 0
}

// dir is the name of the directory: for people, and different for different shares.
func (s Share) dir() string {
	l := s.bounds()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d %d %d", s.Name, l.MemoryBytes, l.Pids, l.CPUPercent))
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, s.Name)
	return sharePrefix + name[:min(len(name), maxShareName)] + "-" + hex.EncodeToString(sum[:8])
}

// shared is a Share's directory.
type shared struct {
	*bounds
	dir string
	oom oomSource // nil without a memory controller
	// Guarded by root.sharesMu.
	users   int   // groups in it
	weights int64 // theirs: together they weigh what they would without it
}

// join has one more group be in the Share's directory, which is made if need be.
func (r *Root) join(s Share, weight int64) (*shared, error) {
	if s.empty() || r.mode == ModeNone {
		return nil, nil
	}
	r.sharesMu.Lock()
	defer r.sharesMu.Unlock()
	share := r.shares[s.dir()]
	if share == nil {
		var err error
		if share, err = r.makeShare(s); err != nil {
			return nil, fmt.Errorf("cannot create the cgroup of %q: %w", s.Name, err)
		}
		r.shares[share.dir] = share
	}
	return share, share.count(1, weight)
}

// count is for one group more, or less, in the directory. The caller holds sharesMu.
func (s *shared) count(by int, weight int64) error {
	s.users += by
	s.weights += int64(by) * weight
	if s.users == 0 {
		return nil
	}
	return s.weigh(min(max(s.weights, 1), maxWeight))
}

// Rest takes the group out of the CPU weight of its Share, because its processes wait for
// work, until Rise. OOMs of the Share in between are not attributed to the group.
func (g *Group) Rest() { g.rest(true) }

// Rise ends Rest, for a group that has work.
func (g *Group) Rise() { g.rest(false) }

func (g *Group) rest(rests bool) {
	s := g.share
	if s == nil {
		return
	}
	g.root.sharesMu.Lock()
	defer g.root.sharesMu.Unlock()
	if g.rests == rests {
		return
	}
	was := g.weight()
	g.rests = rests
	s.weights += g.weight() - was
	if err := s.count(0, 0); err != nil {
		g.root.log.Warn("cannot set the CPU weight of calls together", "cgroup", s.dir, "error", err)
	}
	g.shareOOMs = s.ooms()
}

func (r *Root) makeShare(s Share) (_ *shared, err error) {
	share := &shared{bounds: newBounds(r, s.dir()+"/", defaultWeight), dir: s.dir()}
	defer func() {
		if err != nil {
			err = errors.Join(err, share.remove())
		}
	}()
	for _, h := range r.hierarchies() {
		if err := h.tools.mkdir(share.dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, c := range r.v2.controllers {
		if err := r.v2.tools.write(share.prefix+"cgroup.subtree_control", "+"+c); err != nil {
			return nil, err
		}
	}
	if share.oom, err = share.openOOM(); err != nil {
		return nil, err
	}
	limits := s.bounds()
	limits.CPUPercent = r.all.within(limits.CPUPercent)
	return share, share.set(limits, defaultWeight, true)
}

// openOOM counts when the Share's memory ran out, and not that of all groups or of one.
func (s *shared) openOOM() (oomSource, error) {
	h := s.root.limited[ctrlMemory]
	switch {
	case h == nil:
		return nil, nil
	case h.version == 1:
		return newOOMV1(h.tools, s.dir, s.root.oom)
	}
	fd, err := h.tools.openFile(s.prefix+"memory.events.local", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &oomV2{fd: fd}, nil
}

// ooms is how often it ran out so far; 0 of no Share.
func (s *shared) ooms() int64 {
	if s == nil || s.oom == nil {
		return 0
	}
	counts, _ := s.oom.look()
	return counts.own
}

// leave has one group less in the directory. What cannot be removed with the last one
// waits for the next, or for Close.
func (s *shared) leave(weight int64) {
	if s == nil {
		return
	}
	s.root.sharesMu.Lock()
	defer s.root.sharesMu.Unlock()
	if err := s.count(-1, weight); err != nil {
		s.root.log.Warn("cannot set the CPU weight of calls together", "cgroup", s.dir, "error", err)
	}
	if s.users > 0 || s.root.closed {
		return
	}
	if err := s.remove(); err != nil {
		s.root.log.Warn("cannot remove the cgroup of calls together: trying again with the next of them", "error", err)
		return
	}
	delete(s.root.shares, s.dir)
}

func (s *shared) remove() error {
	var errs []error
	for _, h := range slices.Backward(s.root.hierarchies()) {
		errs = append(errs, rmdirRetry(h.tools, s.dir))
	}
	if errors.Join(errs...) == nil {
		s.close()
	}
	return errors.Join(errs...)
}

// close gives up what the directory's files have open.
func (s *shared) close() {
	s.end()
	if s.oom != nil {
		s.oom.close()
	}
}

// closeShares is for those that Close finds: their directories go with ours.
func (r *Root) closeShares() {
	r.sharesMu.Lock()
	defer r.sharesMu.Unlock()
	for _, s := range r.shares {
		s.close()
	}
}
