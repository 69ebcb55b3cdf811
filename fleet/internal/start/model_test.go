package start

import "fmt"

// The model has one call of a caller, its attempts, and two workers that live
// twice. A message once sent may be delivered at any time, any number of times, or
// never; so it may be lost, late, repeated and overtaken. Parties crash at any time.
const (
	modelAttempts = 2
	modelWorkers  = 2
	modelLives    = 2
)

// attempt is one at its worker, and what was ever sent about it.
type attempt struct {
	state   Attempt // in the life that it was offered to
	life    uint8
	ledger  bool
	starts  uint8
	implied bool
	sent    [Query + 1]bool      // by the caller
	said    [SayUnknown + 1]bool // by the worker
	result  bool
}

type node struct {
	life    uint8
	records uint8 // the first life that the ledger has: a reboot loses those before
}

type world struct {
	caller   Caller
	crashed  bool // the caller; its messages go on
	exempt   bool // the tool may start twice
	attempts [modelAttempts]attempt
	workers  [modelWorkers]node
}

// rules are what the model runs; mutants replace one of them.
type rules struct {
	next         func(Attempt, Message) (Attempt, Answer, bool)
	earlier      func(known, started bool) Answer
	silent       func(c *Caller, attempt int)
	ready        func(c *Caller, attempt int) (Message, []int)
	anyLife      bool // a worker takes messages for an earlier life of it
	ledgerLate   bool // the tool starts before the ledger has it
	stopsAtOnce  bool // a call whose go is out is called never started when it is stopped
	refusedFresh bool // a worker that cannot prepare an attempt does not remember that
}

func code() rules {
	return rules{
		next: Attempt.Next, earlier: Earlier,
		silent: func(c *Caller, attempt int) { c.Silent(attempt) },
		ready:  (*Caller).Ready,
	}
}

type step struct {
	what
	to world
}

// what is a format and what it is of; it is written for a fault alone.
type what struct {
	format string
	of     [2]int
}

func (w what) String() string { return fmt.Sprintf("%s %v", w.format, w.of) }

// next are all worlds that one step leads to.
func (r rules) steps(w world) (list []step) {
	add := func(to world, format string, of ...int) {
		s := step{what{format: format}, to}
		copy(s.of[:], of)
		list = append(list, s)
	}
	if !w.crashed {
		r.callerSteps(w, add)
		crash := w
		crash.crashed, crash.caller = true, Caller{} // nobody hears what is said any more
		for i := range crash.attempts {
			crash.attempts[i].said, crash.attempts[i].result = [SayUnknown + 1]bool{}, false
		}
		add(crash, "the caller crashes")
	}
	for i := range w.attempts {
		for m := Offer; m <= Query; m++ {
			if w.attempts[i].sent[m] {
				to := w
				r.deliver(&to, i, m)
				add(to, "a worker gets message, of attempt", int(m), i)
			}
		}
		r.workerSteps(w, i, add)
	}
	for i := range w.workers {
		if w.workers[i].life+1 < modelLives {
			to := w
			to.workers[i].life++
			for at := i; r.anyLife && at < modelAttempts; at += modelWorkers {
				to.attempts[at].state = Unseen // there is no life to tell that it was offered to another
			}
			add(to, "a worker dies and restarts", i)
			to.workers[i].records = to.workers[i].life
			add(to, "a machine reboots", i)
		}
	}
	return list
}

type adder func(to world, format string, of ...int)

func (r rules) callerSteps(w world, add adder) {
	for life := range modelLives {
		to := w
		n, ok := to.caller.Offer(w.exempt)
		if !ok || n >= modelAttempts || life > int(w.workers[n%modelWorkers].life) {
			continue
		}
		a := &to.attempts[n]
		a.life, a.implied = uint8(life), w.exempt
		never := to
		never.caller.Refused(n)
		add(never, "nobody gets the offer", n)
		a.sent[Offer] = true
		if w.exempt {
			a.sent[Offer], a.sent[OfferAndGo] = false, true
		}
		add(to, "the caller offers an attempt to a life", n, life)
	}
	for i, a := range w.attempts {
		if a.said[SayReady] {
			to := w
			send, voided := r.ready(&to.caller, i)
			if send != Nothing {
				to.attempts[i].sent[send] = true
			}
			to.void(voided)
			add(to, "the caller hears ready", i)
		}
		r.heard(w, i, add)
		to := w
		r.silent(&to.caller, i)
		if to.caller != w.caller {
			to.attempts[i].sent[Void] = true
			add(to, "the caller takes an attempt for silent", i)
		}
		if at, ok := w.caller.Chosen(); ok && at == i {
			to := w
			to.attempts[i].sent[Query] = true
			add(to, "the caller asks", i)
			to = w
			to.caller.Gone(i)
			add(to, "the lease is over", i)
		}
	}
	to := w
	to.void(to.caller.Stop())
	if r.stopsAtOnce && to.caller.phase == Committed {
		to.caller.phase = Never
	}
	add(to, "the call is aborted")
}

// heard are the steps by what else a worker has said.
func (r rules) heard(w world, i int, add adder) {
	a, hear := w.attempts[i], func(said bool, what string, f func(*Caller)) {
		if said {
			to := w
			f(&to.caller)
			add(to, "the caller hears "+what, i)
		}
	}
	hear(a.said[SayNever], "never", func(c *Caller) { c.Refused(i) })
	hear(a.said[SayStarted], "started", func(c *Caller) { c.Started(i) })
	hear(a.said[SayGone], "gone", func(c *Caller) { c.Gone(i) })
	hear(a.said[SayUnknown], "unknown", func(c *Caller) { c.Gone(i) })
	hear(a.result, "the result", func(c *Caller) { c.Result(i) })
}

func (w *world) void(attempts []int) {
	for _, i := range attempts {
		w.attempts[i].sent[Void] = true
	}
}

// deliver gives a worker a message.
func (r rules) deliver(w *world, i int, m Message) {
	defer func() {
		if w.crashed {
			w.attempts[i].said, w.attempts[i].result = [SayUnknown + 1]bool{}, false
		}
	}()
	a, n := &w.attempts[i], w.workers[i%modelWorkers]
	if n.life != a.life && !r.anyLife {
		known := a.life >= n.records && a.state != Forgotten
		a.said[r.earlier(known, known && a.ledger)] = true
		return
	}
	var say Answer
	var begin bool
	a.state, say, begin = r.next(a.state, m)
	if begin {
		a.starts++
		a.ledger = a.ledger || !r.ledgerLate
	}
	a.said[say] = true
	a.result = a.result || say == SayStarted && a.state == Finished
}

// workerSteps are those of an attempt's worker by itself.
func (r rules) workerSteps(w world, i int, add adder) {
	a := w.attempts[i]
	if w.workers[i%modelWorkers].life != a.life || a.sent == [Query + 1]bool{} {
		return
	}
	to := w
	if to.attempts[i].state = a.state.Expire(); to != w {
		to.attempts[i].said[SayNever] = !w.crashed
		if r.refusedFresh {
			to.attempts[i].state = Unseen
		}
		add(to, "an attempt expires, or cannot be prepared", i)
	}
	if a.state == Started {
		to := w
		to.attempts[i].state, to.attempts[i].ledger = Finished, true
		add(to, "an attempt ends", i)
	}
	to = w
	if next, ok := a.state.Forget(); ok {
		to.attempts[i].state = next
		add(to, "an attempt is forgotten", i)
	}
}

// check finds a fault.
func (w world) check() string {
	total, unproven := 0, 0
	for i, a := range w.attempts {
		if a.starts > 1 {
			return fmt.Sprintf("attempt %d started twice", i)
		}
		total += int(a.starts)
		if chosen, ok := w.caller.Chosen(); !w.crashed && a.starts > 0 && !w.exempt && ok && chosen != i {
			unproven++
		}
	}
	switch phase := w.caller.phase; {
	case w.crashed && (total <= 1 || w.exempt):
	case total > 1 && !w.exempt:
		return "the tool started twice"
	case unproven > 0:
		return "another attempt than the one with the go has started"
	case phase == Never && total > 0:
		return "it is said never to have started, and has"
	case phase == Placing && total > 0 && !w.caller.doubt:
		return "it may be offered again, and has started"
	case phase == Ended && total == 0:
		return "a result without a start"
	}
	return ""
}

// explore visits every world that rules lead to, and returns the first fault with the
// way to it.
func explore(r rules, exempt bool) (fault string, way []string, worlds int, ends map[Phase]int) {
	type origin struct {
		w    world
		from int
		what what
	}
	list, seen := []origin{{w: world{exempt: exempt}}}, map[world]bool{{exempt: exempt}: true}
	ends = map[Phase]int{}
	for at := 0; at < len(list); at++ {
		w := list[at].w
		ends[w.caller.phase]++
		if fault = w.check(); fault != "" {
			for ; at > 0; at = list[at].from {
				way = append([]string{list[at].what.String()}, way...)
			}
			return fault, way, len(list), ends
		}
		for _, s := range r.steps(w) {
			if !seen[s.to] {
				seen[s.to] = true
				list = append(list, origin{s.to, at, s.what})
			}
		}
	}
	return "", nil, len(list), ends
}
