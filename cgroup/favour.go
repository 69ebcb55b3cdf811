package cgroup

import "time"

// favourFor is how long all groups together weigh boostWeight from the beginning
// of a start, on cgroup v1 and unless the operator has said what they weigh. A start
// is a hundred system calls in a row: beside a busy host, each of whose threads
// weighs as much as a group there, each may wait for a turn on the CPU.
const favourFor = 250 * time.Millisecond

// favour is of bounds while groups start. It is guarded by their mu.
type favour struct {
	never bool // the weight is the operator's
	on    bool
	until time.Time
}

// favourStart is for the beginning of a start. Without favour that only takes longer.
func (b *bounds) favourStart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.root.limited[ctrlCPU]; b.favour.never || h == nil || h.version != 1 {
		return
	}
	b.favour.until = time.Now().Add(favourFor)
	if !b.favour.on {
		b.favour.on = true
		time.AfterFunc(favourFor, b.endFavour)
	}
	if b.weight == boostWeight {
		return
	}
	if err := b.weighNow(boostWeight); err != nil {
		b.root.log.Debug("cannot raise the CPU weight of calls together: a start may take longer", "error", err)
	}
}

// endFavour puts the weight back, unless other starts have begun.
func (b *bounds) endFavour() {
	b.root.mu.RLock()
	defer b.root.mu.RUnlock()
	if b.root.closed {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.favour.on = false; b.favour.never {
		return
	}
	if left := time.Until(b.favour.until); left > 0 {
		b.favour.on = true
		time.AfterFunc(left, b.endFavour)
		return
	}
	if err := b.weighNow(toolsWeight); err != nil {
		b.root.log.Warn("cannot restore the CPU weight of calls together: the next start's end tries again", "error", err)
	}
}
