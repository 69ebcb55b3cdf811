package engine

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/lazy"
)

// refusals logs what the server refuses its clients, each thing once: they try again for ever.
// It is the server's logger.
type refusals struct {
	logger hclog.Logger

	mu   sync.Mutex
	said map[string]bool
	of   map[string]int // how much by address
}

// These bound what is logged in an engine's life, whatever clients send. What one address
// sends leaves room for the others.
const (
	maxRefusals      = 2000
	maxRefusalsOfOne = 50
)

func newRefusals(logger hclog.Logger) *refusals {
	return &refusals{logger: logger, said: map[string]bool{}, of: map[string]int{}}
}

var (
	// aboutClient matches what the server says of a client: its address, words of its own, and
	// what was wrong.
	aboutClient = lazy.Regexp(`(?s)^(\S+):\d+ - cid:\d+ - (?:"(?:[^"\\]|\\.)*" - )*(.*)$`)
	// strangersKey matches what was wrong with a client whose key is unknown.
	strangersKey = lazy.Regexp(`^authentication error - Nkey "(U[A-Z2-7]{55})"$`)
)

// Errorf takes a line that the server says of a client.
func (r *refusals) Errorf(format string, v ...any) {
	parts := aboutClient().FindStringSubmatch(fmt.Sprintf(format, v...))
	if parts == nil || !r.isNew(parts[1], parts[2]) {
		return
	}
	if key := strangersKey().FindStringSubmatch(parts[2]); key != nil {
		r.logger.Warn("a worker is refused: its key was removed, or is not in fleet.workers; it is not logged again", "address", parts[1], "key", key[1])
		return
	}
	r.logger.Warn("the fleet's engine refuses something; it is not logged again", "address", parts[1], "error", parts[2])
}

func (r *refusals) isNew(address, what string) bool {
	line := address + " " + what
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[line] || len(r.said) >= maxRefusals || r.of[address] >= maxRefusalsOfOne {
		return false
	}
	r.said[line] = true
	r.of[address]++
	return true
}

// The rest of what the server says is nothing that anyone has to see to.

func (r *refusals) Noticef(string, ...any) {}
func (r *refusals) Warnf(string, ...any)   {}
func (r *refusals) Fatalf(string, ...any)  {}
func (r *refusals) Debugf(string, ...any)  {}
func (r *refusals) Tracef(string, ...any)  {}
