// Package place chooses the worker that a call is offered to. It is pure.
//
// It is the better of two workers chosen at random among those that fit, by the free slots
// that the last beat told, less what this caller has offered since: so callers that know
// the same do not all go to the same worker. The first that is asked is one of those with a free slot, which beats
// tell at once. The others are any: they keep a place for a call that found none, and the
// first that has a slot gets it, so none waits behind a long queue by chance.
package place

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// State is what a worker takes.
type State uint8

// The states of a worker.
const (
	Taking       State = iota
	Draining           // it ends what it has, and takes nothing more
	Suspect            // it was not heard for a while
	Incompatible       // it speaks another protocol
)

// Worker is what a caller knows of one.
type Worker struct {
	Name   string
	State  State
	Labels map[string]string
	// Free slots by its last beat, of all; negative are calls that wait there.
	Free, Slots int
	// Offered by this caller since that beat.
	Offered int
}

// room is how many slots it has, as far as is known.
func (w Worker) room() int { return w.Free - w.Offered }

// PlacesPerSlot are the calls that may wait at a worker for each of its slots.
const PlacesPerSlot = 2

// Takes says whether a worker takes the call, if not at once.
func (want Want) Takes(workers []Worker) bool { return len(eligible(workers, want, nil)) > 0 }

// HasPlace says whether one that takes the call has a slot, or a place to wait for one, as far
// as is known.
func (want Want) HasPlace(workers []Worker) bool {
	return slices.ContainsFunc(workers, func(w Worker) bool {
		return w.State == Taking && want.Fits(w) && w.room() > -PlacesPerSlot*w.Slots
	})
}

// Want is what a call needs of its worker: labels with these values. The label "worker"
// is its name.
type Want map[string]string

// NameLabel is the label that each worker has with its name.
const NameLabel = "worker"

// Fits says whether a worker can take the call at all.
func (want Want) Fits(w Worker) bool {
	for label, value := range want {
		have, ok := w.Labels[label]
		if label == NameLabel {
			have, ok = w.Name, true
		}
		if !ok || have != value {
			return false
		}
	}
	return true
}

// Choose picks a worker to offer the call to, but none in tried. random(n) is one of 0 to
// n-1. ok is false if none is left that fits and takes calls.
func Choose(workers []Worker, want Want, tried []string, random func(n int) int) (w Worker, ok bool) {
	fit := eligible(workers, want, tried)
	if len(fit) == 0 {
		return Worker{}, false
	}
	if len(tried) == 0 {
		fit = freeOf(fit)
	}
	first := random(len(fit))
	second := first
	if len(fit) > 1 {
		second = (first + 1 + random(len(fit)-1)) % len(fit)
	}
	if fit[second].room() > fit[first].room() {
		first = second
	}
	return fit[first], true
}

// freeOf are those with a free slot, or all if none has one.
func freeOf(fit []Worker) []Worker {
	free := make([]Worker, 0, len(fit))
	for _, w := range fit {
		if w.room() > 0 {
			free = append(free, w)
		}
	}
	if len(free) == 0 {
		return fit
	}
	return free
}

func eligible(workers []Worker, want Want, tried []string) []Worker {
	fit := make([]Worker, 0, len(workers))
	for _, w := range workers {
		if w.State == Taking && want.Fits(w) && !slices.Contains(tried, w.Name) {
			fit = append(fit, w)
		}
	}
	return fit
}

// Home picks the same worker for the same key, as long as that is there and takes calls,
// so that calls find the process that was kept for them: the one with the highest hash of
// key and name. When a worker comes or goes, the others' keys stay where they are.
func Home(workers []Worker, want Want, tried []string, key string) (w Worker, ok bool) {
	var best uint64
	for _, each := range eligible(workers, want, tried) {
		sum := sha256.Sum256([]byte(key + "\x00" + each.Name))
		if n := binary.BigEndian.Uint64(sum[:]); !ok || n > best {
			w, best, ok = each, n, true
		}
	}
	return w, ok
}
