package mcpserver

import (
	"fmt"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What waits for a client that takes nothing waits once, and is bounded; nobody waits for
// that client.
func TestMailbox(t *testing.T) {
	var m mailbox
	var mu sync.Mutex
	sent := map[string]int{}
	began, release := make(chan struct{}), make(chan struct{})
	m.put("first", func() {
		close(began)
		<-release
	})
	<-began
	for i := range 2 * maxLetters {
		for range 2 {
			what := fmt.Sprint(i)
			m.put(what, func() {
				mu.Lock()
				defer mu.Unlock()
				sent[what]++
			})
		}
	}
	close(release)
	wait.Until(t, "all is sent", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.sends
	})
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != maxLetters || sent["0"] != 1 {
		t.Errorf("%d things are sent, want %d; the first %d times", len(sent), maxLetters, sent["0"])
	}
}

func TestAgain(t *testing.T) {
	var a again
	steps := []struct {
		begin bool // or goesOn
		want  bool
	}{{true, true}, {true, false}, {true, false}, {false, true}, {false, false}, {true, true}, {false, false}}
	for i, step := range steps {
		got := false
		if step.begin {
			got = a.begin()
		} else {
			got = a.goesOn()
		}
		if got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
