package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// Whoever interrupts a run learns nothing of the plugin by it: what could not be
// tried is nobody's fault.
func TestAnInterruptedRunBlamesNothing(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	c, err := ParseCases("test", []byte(brokenCases))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for _, last := range []rule{ruleHandshake, ruleByHand, ruleUnknown, ruleQuiet} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := Run(ctx, host, Options{
			Tool: supervisor.Tool{Path: self, Args: []string{"broken", "none"}}, Driver: driver, Cases: c, Patience: time.Minute,
			Done: func(c Check) {
				if c.ID == last.id {
					cancel(enough)
				}
			},
		})
		if !errors.Is(err, enough) || r == nil || len(r.Checks) == 0 {
			t.Fatalf("after %s: %+v, %v", last.id, r, err)
		}
		if end := r.Checks[len(r.Checks)-1]; end.ID != last.id || len(r.Failed()) > 0 {
			t.Errorf("after %s came %s; failed: %q", last.id, end.ID, r.Failed())
		}
	}
}
