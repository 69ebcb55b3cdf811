package start

// MaxAttempts bounds the offers of one call: one that waits may be offered again for each place
// that becomes free, which others may take first.
const MaxAttempts = 64

// Phase is where a call stands at its caller.
type Phase uint8

// The phases. The last three are final.
const (
	Placing   Phase = iota // no go was sent that could still start it
	Committed              // a go was sent, and nothing was heard of it since
	Running                // the worker has started it
	Ended                  // its result is there
	Never                  // it has started nowhere, and never will
	Lost                   // it may have started, and its result will not come
)

func (p Phase) String() string {
	return [...]string{"placing", "committed", "running", "ended", "never", "lost"}[p]
}

// Over says whether the phase is final.
func (p Phase) Over() bool { return p >= Ended }

// Caller is one call at its caller. The zero value is one that was not offered yet. It is
// not safe for concurrent use.
type Caller struct {
	phase   Phase
	offered uint8  // attempts so far
	open    uint64 // bits of the attempts that are offered, and neither refused nor given up
	chosen  uint8  // the attempt that has the go; of Committed and Running
	implied bool   // the chosen one had its go in the offer
	doubt   bool   // one with an implied go was given up without proof
	stopped bool   // nothing more is to be offered
}

// Phase is where the call stands.
func (c *Caller) Phase() Phase { return c.phase }

// Chosen is the attempt that has the go; ok is false while none has.
func (c *Caller) Chosen() (attempt int, ok bool) {
	return int(c.chosen), c.phase == Committed || c.phase == Running
}

// Implied says whether an attempt had its go in the offer, and nothing was heard of it since.
func (c *Caller) Implied(attempt int) bool {
	return c.phase == Committed && c.implied && int(c.chosen) == attempt
}

// Open says whether an attempt is offered, and neither refused nor given up.
func (c *Caller) Open(attempt int) bool { return c.phase == Placing && c.open&bit(attempt) != 0 }

func bit(attempt int) uint64 { return 1 << attempt }

// Doubted says whether an attempt with an implied go was given up without proof, so that the
// call cannot be said never to have started.
func (c *Caller) Doubted() bool { return c.doubt }

// Offer begins the next attempt. ok is false where no further one may be made: the go is
// out, the call is over or stopped, or it has had MaxAttempts. With an implied go there is
// one attempt at a time.
func (c *Caller) Offer(implied bool) (attempt int, ok bool) {
	if c.phase != Placing || c.stopped || c.offered == MaxAttempts || implied && c.open != 0 {
		return 0, false
	}
	attempt = int(c.offered)
	c.offered++
	if implied {
		c.phase, c.chosen, c.implied = Committed, uint8(attempt), true
	} else {
		c.open |= bit(attempt)
	}
	return attempt, true
}

// Ready takes a worker's word that it has prepared an attempt. The caller is to send the
// go, to this one alone, or a void: of an attempt that it has given up, and once another
// has the go. voided are attempts that this ends, which are to be sent a void as well.
func (c *Caller) Ready(attempt int) (send Message, voided []int) {
	switch {
	case c.Open(attempt):
		c.open &^= bit(attempt)
		voided = c.giveUp()
		c.phase, c.chosen = Committed, uint8(attempt)
		return Go, voided
	case c.has(attempt) && !c.implied && !c.phase.Over():
		return Go, nil // the first one may not have come
	case c.has(attempt):
		return Nothing, nil
	}
	return Void, nil
}

// has says whether the attempt got the go.
func (c *Caller) has(attempt int) bool {
	return c.phase != Placing && c.phase != Never && int(c.chosen) == attempt
}

// giveUp closes all open attempts.
func (c *Caller) giveUp() (voided []int) {
	for attempt := range MaxAttempts {
		if c.open&bit(attempt) != 0 {
			voided = append(voided, attempt)
		}
	}
	c.open = 0
	return voided
}

// Refused takes proof that an attempt has not started and never will: the worker's word,
// or the engine's that nobody got its only offer.
func (c *Caller) Refused(attempt int) {
	c.open &^= bit(attempt)
	if c.phase == Committed && int(c.chosen) == attempt {
		c.phase, c.implied = Placing, false
		c.endIfStopped()
	}
}

// Silent gives up an attempt that nothing is heard of. It is to be sent a void. Silence
// after a go proves nothing, and gives up nothing unless the go was implied.
func (c *Caller) Silent(attempt int) (voided bool) {
	switch {
	case c.Open(attempt):
		c.open &^= bit(attempt)
		return true
	case c.Implied(attempt):
		c.phase, c.implied, c.doubt = Placing, false, true
		c.endIfStopped()
		return true
	}
	return false
}

// Started takes a worker's word that it has started the tool.
func (c *Caller) Started(attempt int) {
	if c.phase == Committed && int(c.chosen) == attempt {
		c.phase = Running
	}
}

// Result takes a result. It is the call's only once, and only that of the attempt which
// has the go.
func (c *Caller) Result(attempt int) (taken bool) {
	if (c.phase == Committed || c.phase == Running) && int(c.chosen) == attempt {
		c.phase = Ended
		return true
	}
	return false
}

// Gone takes it that nothing more will come of an attempt: its worker's lease is over, or
// a later life of the worker says that it had started, or does not know.
func (c *Caller) Gone(attempt int) {
	if (c.phase == Committed || c.phase == Running) && int(c.chosen) == attempt {
		c.phase = Lost
	}
}

// Stop has nothing more offered, since the call was aborted or no worker takes it. Open
// attempts are given up, and are to be sent a void; a call whose go is out goes on to its
// end, and is to be aborted.
func (c *Caller) Stop() (voided []int) {
	c.stopped = true
	if c.phase == Placing {
		voided = c.giveUp()
		c.endIfStopped()
	}
	return voided
}

func (c *Caller) endIfStopped() {
	switch {
	case !c.stopped || c.phase != Placing:
	case c.doubt:
		c.phase = Lost
	default:
		c.phase = Never
	}
}
