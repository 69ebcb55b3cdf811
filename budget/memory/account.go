// Package memory shares a fixed amount of memory out among those who bring in
// data from outside: a holder counts what it has received, and one key has at
// most its share. Who has to wait is served in order, but for keys that have
// their share already; who holds memory without getting on loses it to those
// who wait.
package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Shares is how many keys can have all that one may have at once.
const Shares = 8

const (
	// maxWaiting bounds those who wait.
	maxWaiting = 1024
	// Memory that was reserved and is not used yet is kept from those who wait for
	// as long as at least leastProgress of it is used in each reserveTime.
	reserveTime   = 100 * time.Millisecond
	leastProgress = 32 << 10
)

// ErrFull is why there is no memory for a holder: it is all in use. The same may
// do later.
var ErrFull = errors.New("too much data is being received at this time: try again later")

// ErrLost is why a holder has no memory any more: it was too slow while others
// waited for it.
var ErrLost = errors.New("receiving the data took too long while others waited for the memory: send it faster, or try again later")

// Account is a fixed amount of memory. Its methods may be called from any
// goroutine.
type Account struct {
	capacity, share int64
	patience        time.Duration

	mu      sync.Mutex
	used    int64
	keys    map[string]int64
	holders map[*Holder]struct{} // that have memory of the account's
	waiting []*waiter            // in order
}

// waiter is somebody who waits.
type waiter struct {
	holder   *Holder
	bytes    int64
	reserves bool
	ready    chan struct{} // closed once the bytes are the holder's
}

// Within is bytes, or an n-th of what this process may use (GOMEMLIMIT, or what
// its program has set) where that is less.
func Within(bytes, n int64) int64 { return min(bytes, debug.SetMemoryLimit(-1)/n) }

// New makes an account of so many bytes. patience is how long a holder may keep
// memory while others wait for it.
func New(capacity int64, patience time.Duration) *Account {
	return &Account{
		capacity: capacity, share: capacity / Shares, patience: patience,
		keys: map[string]int64{}, holders: map[*Holder]struct{}{},
	}
}

// Share is what one key may have.
func (a *Account) Share() int64 { return a.share }

// Used is how much is in use.
func (a *Account) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Holder is one who receives data. Release must be called at its end.
type Holder struct {
	account *Account
	key     string
	free    int64
	onLost  func()

	// Guarded by the account's mu.
	bytes    int64     // in use, those that are free included
	counted  int64     // by the account
	reserved int64     // of counted: not in use yet
	seen     int64     // what was reserved when it was last looked at
	seenAt   time.Time // or reserved
	since    time.Time // when counted began to be more than 0
	lost     bool
	released bool
}

// Hold makes a holder. Its first free bytes are not counted: few bytes never
// wait. lost, if not nil, is called once, on a goroutine of its own, if the
// holder loses its memory; it must then release it soon.
func (a *Account) Hold(key string, free int64, lost func()) *Holder {
	return &Holder{account: a, key: key, free: free, onLost: lost}
}

// Reserve waits for memory that will be used soon. It is for a holder without
// any. Memory that is hardly used is given to other waiters; Take then has to
// get it again.
func (h *Holder) Reserve(ctx context.Context, bytes int64) error {
	h.account.mu.Lock()
	bytes = min(bytes, h.account.share+h.free)
	if h.bytes > 0 || h.counted > 0 || bytes <= h.free {
		h.account.mu.Unlock()
		return nil
	}
	return h.account.get(ctx, &waiter{holder: h, bytes: bytes - h.free, reserves: true, ready: make(chan struct{})})
}

// Try is Take for bytes that the holder has already: its free ones, and what was
// reserved. It never waits; false means that nothing was counted.
func (h *Holder) Try(bytes int64) bool {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	return !h.lost && !h.released && h.covers(bytes)
}

// lacks is what the account must give for so many bytes more, and what of the
// reserved ones they use. The account is locked.
func (h *Holder) lacks(bytes int64) (need, kept int64) {
	need = max(h.bytes+bytes-h.free, 0) - (h.counted - h.reserved)
	kept = min(max(need, 0), h.reserved)
	return need - kept, kept
}

// covers counts bytes for which the account need not give any. It is locked.
func (h *Holder) covers(bytes int64) bool {
	need, kept := h.lacks(bytes)
	if need > 0 {
		return false
	}
	h.reserved -= kept
	h.bytes += bytes
	return true
}

// Take counts bytes that are in use now. Where they don't fit, the oldest holder
// of a key waits, and one that has nothing yet; another gets ErrFull at once, for
// who waits with its hands full makes others wait.
func (h *Holder) Take(ctx context.Context, bytes int64) error {
	a := h.account
	for {
		a.mu.Lock()
		if h.lost || h.released {
			a.mu.Unlock()
			return ErrLost
		}
		if h.covers(bytes) {
			a.mu.Unlock()
			return nil
		}
		need, _ := h.lacks(bytes)
		w := &waiter{holder: h, bytes: need, reserves: true, ready: make(chan struct{})}
		switch holds := h.counted > 0; {
		case holds && a.fits(h.key, need): // before those who have nothing: it is done sooner
			a.count(w)
			a.mu.Unlock()
			continue
		case holds && a.hasOlder(h):
			a.mu.Unlock()
			return ErrFull
		}
		if err := a.get(ctx, w); err != nil { // what was reserved may be lost meanwhile
			return err
		}
	}
}

// Give takes back what Take counted.
func (h *Holder) Give(bytes int64) {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	h.give(bytes)
}

// Keep gives all back but so many of the bytes that are in use.
func (h *Holder) Keep(bytes int64) {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	h.give(max(h.bytes-bytes, 0))
}

// give is called while the account is locked.
func (h *Holder) give(bytes int64) {
	if h.released {
		return
	}
	a := h.account
	h.bytes = max(h.bytes-bytes, 0)
	a.uncount(h, max(h.counted-h.reserved-max(h.bytes-h.free, 0), 0))
	a.serve()
}

// Release gives everything back. It may be called again.
func (h *Holder) Release() {
	a := h.account
	a.mu.Lock()
	defer a.mu.Unlock()
	h.released = true
	h.bytes, h.reserved = 0, 0
	a.uncount(h, h.counted)
	a.waiting = slices.DeleteFunc(a.waiting, func(w *waiter) bool { return w.holder == h })
	a.serve()
}

// get waits in line. The caller has locked mu.
func (a *Account) get(ctx context.Context, w *waiter) error {
	if w.bytes > a.share {
		a.mu.Unlock()
		return fmt.Errorf("%w (%d bytes at once are more than the %d that one may have)", ErrFull, w.bytes, a.share)
	}
	if len(a.waiting) >= maxWaiting {
		a.mu.Unlock()
		return ErrFull
	}
	a.waiting = append(a.waiting, w)
	a.serve()
	a.mu.Unlock()
	return a.wait(ctx, w)
}

func (a *Account) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.ready:
		return nil
	default:
	}
	began := time.Now()
	again := time.NewTicker(reserveTime)
	defer again.Stop()
	for {
		select {
		case <-w.ready:
			return nil
		case <-again.C:
			if err := a.reclaim(w, time.Since(began) >= a.patience); err != nil {
				return err
			}
		case <-ctx.Done():
			return a.leave(w, context.Cause(ctx))
		}
	}
}

// leave gives up waiting, unless the bytes have come.
func (a *Account) leave(w *waiter, why error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.Index(a.waiting, w)
	if at < 0 && !w.holder.released {
		return nil
	}
	if at >= 0 {
		a.waiting = slices.Delete(a.waiting, at, at+1)
		a.serve()
	}
	return why
}

// serve gives memory to those who wait, in order. A key that has its share keeps
// no other one waiting.
func (a *Account) serve() {
	var full map[string]bool
	for at := 0; at < len(a.waiting); {
		w := a.waiting[at]
		key := w.holder.key
		switch {
		case full[key] || a.keys[key]+w.bytes > a.share:
			if full == nil {
				full = map[string]bool{}
			}
			full[key] = true
			at++
		case a.used+w.bytes > a.capacity:
			return
		default:
			a.waiting = slices.Delete(a.waiting, at, at+1)
			a.count(w)
			close(w.ready)
		}
	}
}

func (a *Account) count(w *waiter) {
	h := w.holder
	if h.counted == 0 {
		h.since = time.Now()
		a.holders[h] = struct{}{}
	}
	h.counted += w.bytes
	if w.reserves {
		h.reserved += w.bytes
		h.seen, h.seenAt = h.reserved, time.Now()
	}
	a.used += w.bytes
	a.keys[h.key] += w.bytes
}

func (a *Account) uncount(h *Holder, bytes int64) {
	h.counted -= bytes
	a.used -= bytes
	if a.keys[h.key] -= bytes; a.keys[h.key] == 0 {
		delete(a.keys, h.key)
	}
	if h.counted == 0 {
		delete(a.holders, h)
	}
}

// fits says whether somebody can have more at once.
func (a *Account) fits(key string, bytes int64) bool {
	return a.keys[key]+bytes <= a.share && a.used+bytes <= a.capacity
}

func (a *Account) hasOlder(h *Holder) bool {
	for other := range a.holders {
		if other != h && other.key == h.key && other.since.Before(h.since) {
			return true
		}
	}
	return false
}

// reclaim takes memory from those who keep it from somebody who waits: what was
// reserved and is not used, and from the slow, if patience is over, everything.
func (a *Account) reclaim(w *waiter, patient bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.holder.lost || w.holder.released {
		a.waiting = slices.DeleteFunc(a.waiting, func(other *waiter) bool { return other == w })
		return ErrLost
	}
	lacking := a.keys[w.holder.key]+w.bytes > a.share
	for h := range a.holders {
		age := time.Since(h.since)
		if h == w.holder || lacking && h.key != w.holder.key || age < reserveTime {
			continue
		}
		a.takeReserve(h)
		if patient && age >= a.patience {
			a.lose(h)
		}
	}
	a.serve()
	return nil
}

// takeReserve takes back what was reserved by somebody who hardly uses it.
func (a *Account) takeReserve(h *Holder) {
	if time.Since(h.seenAt) < reserveTime {
		return
	}
	if h.seen-h.reserved < leastProgress {
		a.uncount(h, h.reserved)
		h.reserved = 0
	}
	h.seen, h.seenAt = h.reserved, time.Now()
}

func (a *Account) lose(h *Holder) {
	if h.lost || h.counted == 0 {
		return
	}
	h.lost = true
	if h.onLost != nil {
		go h.onLost()
	}
}
