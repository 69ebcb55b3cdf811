package worker

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/fleet/internal/lease"
	"github.com/toolhost/toolhost/fleet/internal/start"
	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// caller is one that the worker trusts, in its newest life.
type caller struct {
	key, life string
	echoed    uint64
	hold      lease.Hold
	attempts  map[uint64]*attempt
	// floor: attempts up to it that are not in attempts are forgotten.
	floor uint64
}

// maxAttempts bounds what is remembered of a caller's attempts.
const maxAttempts = 4096

// hears takes a caller's echo. A life that was not heard before replaces the last one
// only if what it echoes is newer than all that was echoed: an old message that comes
// again is not. ended are attempts of the life before.
func (c *caller) hears(b *lease.Beats, life string, echoed uint64, term time.Duration) (ended []*attempt) {
	if life != c.life {
		if echoed <= c.echoed || life == "" {
			return nil
		}
		if _, fresh := b.SentAt(echoed); !fresh {
			return nil
		}
		for _, a := range c.attempts {
			ended = append(ended, a)
		}
		c.life, c.attempts, c.floor, c.hold = life, map[uint64]*attempt{}, 0, lease.Hold{}
	}
	c.echoed = max(c.echoed, echoed)
	c.hold.Renew(b, echoed, term)
	return ended
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
	for len(c.attempts) >= maxAttempts {
		oldest := uint64(0)
		for n, other := range c.attempts {
			if _, ok := other.state.Forget(); ok && other.idle() && (oldest == 0 || n < oldest) {
				oldest = n
			}
		}
		if oldest == 0 {
			return false
		}
		delete(c.attempts, oldest)
		c.floor = max(c.floor, oldest)
	}
	c.attempts[serial] = a
	return true
}

// nameOf names an attempt in the ledger.
func nameOf(id *fleetv1.Attempt) string {
	return fmt.Sprintf("%s %s %d", id.Caller, id.Life, id.Serial)
}
