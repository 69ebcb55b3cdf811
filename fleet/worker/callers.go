package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/link"
	"github.com/toolhost/toolhost/fleet/internal/seal"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
)

// caller is one that the worker trusts, in its newest life. Two daemons with one key are two
// lives of it, and the later one stays: of what the worker had started for the other it keeps
// no record, so that one may not come back.
type caller struct {
	key, life string
	release   link.Release // of that life
	echoed    uint64
	hold      lease.Hold
	session   *seal.Session // of that life; nil until its curve key is known
	drained   bool          // that life has asked for no more calls
	other     *fleetv1.Echo // the last one for another process with the worker's name
	before    *seal.Session // of the life before
	past      []string      // lives before this one, the last ones
	since     uint64        // the echo that this one began with
	twin      lease.Hold    // while it lasts, a past life is heard beside this one
	// leases are those of launchers, by the seconds of grace that calls have.
	leases   map[int64]*sandbox.Lease
	terms    int // how often these were made anew
	attempts map[uint64]*attempt
	// floor: attempts up to it that are not in attempts are forgotten.
	floor uint64
}

// maxPast bounds the lives of a caller that are remembered.
const maxPast = 1024

// maxAttempts bounds what is remembered of a caller's attempts.
const maxAttempts = 4096

// forgetAtOnce is how many of them are dropped at once, since that looks at all.
const forgetAtOnce = 256

// hears takes a caller's echo. A life that was not heard before replaces the last one
// only if what it echoes is newer than all that was echoed: an old message that comes
// again is not. A life that was replaced does not come back. ended are attempts of the life
// before.
func (c *caller) hears(b *lease.Beats, life string, echoed uint64, term time.Duration) (ended []*attempt) {
	if life != c.life {
		if slices.Contains(c.past, life) {
			if echoed >= c.since { // it goes on
				c.twin.Renew(b, echoed, term)
			}
			return nil
		}
		if echoed <= c.echoed || life == "" {
			return nil
		}
		if _, fresh := b.SentAt(echoed); !fresh {
			return nil
		}
		for _, a := range c.attempts {
			ended = append(ended, a)
		}
		c.drop()
		if c.life != "" {
			c.past = append(c.past[max(0, len(c.past)+1-maxPast):], c.life)
		}
		c.since = echoed
		c.life, c.attempts, c.floor, c.hold, c.session, c.before, c.drained = life, map[uint64]*attempt{}, 0, lease.Hold{}, nil, c.session, false
	}
	c.echoed = max(c.echoed, echoed)
	c.hold.Renew(b, echoed, term)
	return ended
}

// late says whether a message is one of the life before, which nobody has forged.
func (c *caller) late(kind seal.Kind, raw []byte, into proto.Message) bool {
	return c.before != nil && seal.Open(kind, c.key, c.before, raw, into) == nil
}

// state is that of an attempt in this life.
func (c *caller) state(serial uint64) start.Attempt {
	if a := c.attempts[serial]; a != nil {
		return a.state
	}
	if serial <= c.floor {
		return start.Forgotten
	}
	return start.Unseen
}

// remember makes room for an attempt and enters it; false if all places are taken by ones
// that must be remembered.
func (c *caller) remember(a *attempt) bool {
	serial := a.id.Serial
	if c.attempts[serial] != nil {
		return true
	}
	if serial <= c.floor {
		return false
	}
	if len(c.attempts) >= maxAttempts && !c.forget() {
		return false
	}
	c.attempts[serial] = a
	return true
}

// forget drops the oldest attempts that may be, and says whether it has.
func (c *caller) forget() bool {
	var old []uint64
	for serial, a := range c.attempts {
		if _, ok := a.state.Forget(); ok && a.idle() {
			old = append(old, serial)
		}
	}
	slices.Sort(old)
	old = old[:min(len(old), forgetAtOnce)]
	for _, serial := range old {
		delete(c.attempts, serial)
		c.floor = max(c.floor, serial)
	}
	return len(old) > 0
}

// nameOf names an attempt in the ledger.
func nameOf(id *fleetv1.Attempt) string {
	return fmt.Sprintf("%s %s %d", id.Caller, id.Life, id.Serial)
}

// lease is what the launcher of a call with this grace period holds: a live worker's
// ladder comes first, which ends the call by then.
func (c *caller) lease(grace time.Duration) (l *sandbox.Lease, err error) {
	seconds := lease.Seconds(grace)
	if l = c.leases[seconds]; l != nil {
		return l, nil
	}
	if l, err = sandbox.NewLease(fmt.Sprintf("%s %d %d", c.key, c.terms, seconds)); err != nil {
		return nil, err
	}
	if c.leases == nil {
		c.leases = map[int64]*sandbox.Lease{}
	}
	c.leases[seconds] = l
	return l, c.prolong(seconds)
}

// drop leaves launchers with leases that are over, or are not renewed any more: what comes
// later has others.
func (c *caller) drop() {
	for _, l := range c.leases {
		_ = l.Close() // launchers have it as well
	}
	c.leases, c.terms = nil, c.terms+1
}

// renew moves the launchers' leases with the caller's.
func (c *caller) renew() error {
	var errs []error
	for seconds := range c.leases {
		errs = append(errs, c.prolong(seconds))
	}
	return errors.Join(errs...)
}

func (c *caller) prolong(seconds int64) error {
	return c.leases[seconds].Renew(c.hold.Until() + lease.Ladder(seconds) - now())
}
