package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/signals"
)

const maxRetries = 10

// calls makes the call, and again as far as --retries and its results say. Each is
// a turn of its own; Ctrl-C ends the wait for the next.
func (c *callCommand) calls(daemon *remote, call api.Call) (*api.Result, error) {
	ctx, stop := context.Background(), func() {}
	if c.retries > 0 {
		ctx, stop = signal.NotifyContext(ctx, signals.NotIgnored(os.Interrupt, syscall.SIGTERM)...)
	}
	defer stop()
	results, err := api.RunAgain(ctx, []api.Call{call}, c.again(), func(ctx context.Context, _ int, calls []api.Call) ([]*api.Result, error) {
		result, err := c.session(ctx, daemon, calls[0])
		return []*api.Result{result}, err
	})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// again decides by the call's own budget of retries, and tells people of each.
func (c *callCommand) again() api.Again {
	retry := budget.Retry{Attempts: c.retries + 1, Budget: &budget.RetryBudget{Tokens: float64(max(c.retries, 1))}}
	return func(attempt int, r *api.Result, elapsed time.Duration) (time.Duration, bool) {
		wait, ok := retry.Again(attempt, r, elapsed)
		if ok && !c.flags.quiet && !c.flags.json && !c.flags.events {
			c.flags.tell(present.Outcome(r) + fmt.Sprintf("toolhost: attempt %d of at most %d comes in %s\n", attempt+1, c.retries+1, wait.Round(time.Millisecond)))
		}
		return wait, ok
	}
}
