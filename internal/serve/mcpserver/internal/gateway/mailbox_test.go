package gateway

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// stalled is a mailbox whose client takes nothing until release is called, which returns
// what was sent then.
func stalled(t *testing.T) (m *mailbox, put func(about string, bytes int), release func() []string) {
	t.Helper()
	m = &mailbox{}
	var mu sync.Mutex
	var sent []string
	began, released := make(chan struct{}), make(chan struct{})
	m.put(letter{about: "first", bytes: 1, send: func() {
		close(began)
		<-released
	}})
	<-began
	put = func(about string, bytes int) {
		m.put(letter{about: about, bytes: bytes, send: func() {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, about)
		}})
	}
	return m, put, func() []string {
		close(released)
		wait.Until(t, "all is sent", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return !m.sends
		})
		mu.Lock()
		defer mu.Unlock()
		if m.bytes != 0 {
			t.Errorf("%d bytes are counted when nothing waits", m.bytes)
		}
		return sent
	}
}

// What waits for a client that takes nothing waits once, and is bounded; nobody waits for
// that client. The oldest are left out, and that is said once.
func TestMailbox(t *testing.T) {
	m, put, release := stalled(t)
	left := 0
	m.overflows = func() { left++ }
	for i := range 2 * maxLetters {
		for range 2 {
			put(fmt.Sprint(i), 1)
		}
	}
	sent := release()
	if len(sent) != maxLetters || sent[0] != fmt.Sprint(maxLetters) || left != 1 {
		t.Errorf("%d things are sent, want %d; the first is %s; it is said %d times", len(sent), maxLetters, sent[0], left)
	}
}

// A minor letter takes no other's place, and of two each is its own.
func TestMinorLetters(t *testing.T) {
	m, put, release := stalled(t)
	var minor atomic.Int32
	said := 0
	m.overflows = func() { said++ }
	for range 2 * maxMinor {
		m.put(letter{bytes: 1, send: func() { minor.Add(1) }, minor: true})
	}
	put("first", 1)
	put("last", 1)
	if sent := release(); !slices.Equal(sent, []string{"first", "last"}) || minor.Load() != maxMinor || said != 1 {
		t.Errorf("%q are sent, and %d minor ones; it is said %d times", sent, minor.Load(), said)
	}
}

func TestMailboxIsBoundedByBytes(t *testing.T) {
	m, put, release := stalled(t)
	left := 0
	m.overflows = func() { left++ }
	for i := range 10 {
		put(fmt.Sprint(i), maxLetterBytes/4)
	}
	put("8", 1) // the later one takes its place, and its room is free
	put("10", maxLetterBytes/4)
	if m.bytes > maxLetterBytes || left != 1 {
		t.Errorf("%d bytes wait, at most %d may; it is said %d times", m.bytes, maxLetterBytes, left)
	}
	put("too long", maxLetterBytes+1)
	if sent := release(); !slices.Equal(sent, []string{"7", "9", "8", "10"}) {
		t.Errorf("sent %q", sent)
	}
}

func TestCoalescer(t *testing.T) {
	var a coalescer
	steps := []struct {
		begin bool // or next
		want  bool
	}{{true, true}, {true, false}, {true, false}, {false, true}, {false, false}, {true, true}, {false, false}}
	for i, step := range steps {
		got := false
		if step.begin {
			got = a.begin()
		} else {
			got = a.next()
		}
		if got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
