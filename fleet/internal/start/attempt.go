package start

// Message is what a caller sends about an attempt.
type Message uint8

// The messages.
const (
	Nothing Message = iota
	Offer
	OfferAndGo // the go is implied
	Go
	Void
	Query // what became of it?
)

// Answer is what a worker says of an attempt.
type Answer uint8

// The answers. SayStarted of an earlier life is SayGone: it ended with that.
const (
	SayNothing Answer = iota
	SayReady
	SayNever   // it has not started, and never will
	SayStarted // and its result, once it is there
	SayGone    // it had started, and has ended with the life that had started it
	SayUnknown // nothing is on record of it any more
)

// Attempt is where an attempt stands at its worker, in the life that it was offered to.
type Attempt uint8

// The states of an attempt.
const (
	Unseen Attempt = iota
	Prepared
	Refused // voided, expired, or told never: nothing of it will start
	Started
	Finished  // its result is there
	Forgotten // it was one of these, and is no longer on record, or its result is not
)

// Next is the state after a message, and what is to be answered. Where begin is true the
// attempt is to be written to the ledger, and then started; where the ledger cannot be
// written it is Refused instead, and the answer SayNever.
func (a Attempt) Next(m Message) (next Attempt, say Answer, begin bool) {
	switch a {
	case Started, Finished:
		if m == Void {
			return a, SayNothing, false
		}
		return a, SayStarted, false
	case Forgotten:
		return a, SayUnknown, false
	case Refused:
		return a, SayNever, false
	case Prepared:
		switch m {
		case Offer, OfferAndGo:
			return a, SayReady, false
		case Go:
			return Started, SayStarted, true
		}
	case Unseen:
		switch m {
		case Offer:
			return Prepared, SayReady, false
		case OfferAndGo:
			return Started, SayStarted, true
		}
	}
	return Refused, SayNever, false // a go or void that overtook its offer, and what was asked about: for good
}

// Expire is the state of an attempt whose go did not come in time, that cannot be
// prepared, or that there is no room for. It is to be remembered before it is said: the
// offer may come again, and the word be late.
func (a Attempt) Expire() Attempt {
	if a == Unseen || a == Prepared {
		return Refused
	}
	return a
}

// Forget is the state of an attempt that is to be kept no longer, which only one that
// can start no more may be; ok is false for others.
func (a Attempt) Forget() (next Attempt, ok bool) {
	if a == Refused || a == Finished || a == Forgotten {
		return Forgotten, true
	}
	return a, false
}

// Earlier is what a worker says of an attempt that was offered to an earlier life of it.
// known says whether the ledger goes back to that life, and has not forgotten the
// attempt; started, whether it is in there. Nothing of an earlier life starts any more.
func Earlier(known, started bool) Answer {
	switch {
	case !known:
		return SayUnknown
	case started:
		return SayGone
	}
	return SayNever
}
