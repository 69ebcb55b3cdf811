package kept

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// maxParkedOutput is how much a process may write while it is parked.
const maxParkedOutput = 256 << 10

// warden listens to a process that no call has. What that does then is nobody's, and
// one that has died, or does too much, is ended.
type warden struct {
	line *Line
	left atomic.Int64 // bytes that it may write
	bad  atomic.Bool  // it is not to be parked
}

func newWarden(l *Line) *warden {
	w := &warden{line: l}
	w.left.Store(maxParkedOutput)
	return w
}

// Output counts what nobody reads.
func (w *warden) Output(_ process.Source, p []byte) error {
	n := int64(len(p))
	if left := w.left.Add(-n); left < 0 && left+n >= 0 {
		w.end()
	}
	return nil
}

// OutputEnded says nothing new.
func (w *warden) OutputEnded(process.Source) {}
func (w *warden) InputFailed(error)          {}

// Late is false: nothing ends.
func (w *warden) Late() bool { return false }

// Exited ends what the tool has left.
func (w *warden) Exited(syscall.WaitStatus) { w.end() }

// OutOfMemory ends it.
func (w *warden) OutOfMemory() { w.end() }

// AskNetwork is false: no call is there.
func (w *warden) AskNetwork(context.Context, string, uint16, func(spec.Answer, string)) bool {
	return false
}
func (w *warden) PassedNetwork(string) {}

// end ends the process, unless a call has it.
func (w *warden) end() {
	w.bad.Store(true)
	w.line.ask(func() {
		if i := slices.IndexFunc(w.line.parked, func(s *stay) bool { return s.warden == w }); i >= 0 {
			w.line.lose(w.line.parked[i])
		}
	})
}

// park keeps a process that answers for one call; false if it is over already. It is
// asked of the line, as all below.
func (l *Line) park(s *stay) bool {
	if l.retired || s.warden.bad.Load() {
		l.claim(s)
		return false
	}
	l.setParked(append(l.parked, s))
	return true
}

func (l *Line) setParked(list []*stay) {
	l.parked = list
	l.waiting.Store(int32(len(list)))
}

func (l *Line) unpark(s *stay) {
	l.setParked(slices.DeleteFunc(l.parked, func(other *stay) bool { return other == s }))
}

// lose is for one that has died, or must.
func (l *Line) lose(s *stay) {
	l.unpark(s)
	l.claim(s)
	l.pool.ahead.lost(l)
}

// drain ends all that are parked.
func (l *Line) drain() {
	for _, s := range l.parked {
		l.claim(s)
	}
	l.setParked(nil)
}

// takeParked gives a call the process that has been parked for longest, and that is
// then the call's own. It returns nil if all of them have ended.
func (l *Line) takeParked(c Caller) (g *Guest) {
	l.ask(func() {
		for g == nil && len(l.parked) > 0 {
			s := l.parked[0]
			if !s.process.Join(c) {
				l.lose(s)
				continue
			}
			l.unpark(s)
			g = &Guest{Process: s.process, caller: c, line: l, stay: s, counts: 1}
			s.here[g], s.served = time.Time{}, 1
		}
	})
	l.pool.ahead.asked(l, g != nil)
	if g == nil {
		return nil
	}
	begin, err := g.Process.Begin()
	if err != nil {
		g.Warn("cannot read all that a process has used before its call", err)
	}
	g.begin = &begin
	g.Part(g.stay.warden)
	return g
}
