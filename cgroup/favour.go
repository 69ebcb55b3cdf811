package cgroup

import "time"

// favourFor is how long all groups together weigh startWeight from the beginning
// of a start, unless the operator has said what they weigh. A start is a hundred
// system calls in a row: beside a busy host each may wait for a turn on the CPU.
const favourFor = 250 * time.Millisecond

// favour is of bounds while groups start. It is guarded by their mu.
type favour struct {
	never bool // the weight is the operator's
	on    bool
	until time.Time
}

// mayFavour says whether starts change the weight.
func (b *bounds) mayFavour(may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.favour.never = !may
}

// favourStart is for the beginning of a start.
func (b *bounds) favourStart() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.favour.never {
		return nil
	}
	b.favour.until = time.Now().Add(favourFor)
	if !b.favour.on {
		b.favour.on = true
		time.AfterFunc(favourFor, b.endFavour)
	}
	if b.weight == startWeight {
		return nil
	}
	return b.weighNow(startWeight)
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
	left := time.Until(b.favour.until)
	if b.favour.on = left > 0 && !b.favour.never; b.favour.on {
		time.AfterFunc(left, b.endFavour)
		return
	}
	if b.favour.never {
		return
	}
	if err := b.weighNow(toolsWeight); err != nil {
		b.root.log.Warn("cannot restore the CPU weight of calls together: their next start tries again", "error", err)
	}
}
