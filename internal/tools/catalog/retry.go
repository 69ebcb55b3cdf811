package catalog

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// firstRetry is how long what could not be described is left alone at first.
const firstRetry = 10 * time.Second

// Retry tries again what could not be described, for those who list the tools
// once only: after ten seconds, and then after twice as long each time, but at
// most a minute. It calls recovered after each round that has made something
// known, or after which less is held back, and returns when ctx ends. Where
// everything is known and nothing held back, it rests until Renew changes that.
func (c *Catalog) Retry(ctx context.Context, recovered func()) {
	held, rest := c.held(), firstRetry
	next := time.After(rest)
	for {
		select {
		case <-next:
		case <-c.renewed: // and listed by who has asked for it
			if held = c.held(); held > 0 && next == nil {
				rest = firstRetry
				next = time.After(rest)
			}
			continue
		case <-ctx.Done():
			return
		}
		missing, failed := c.missing()
		before := held
		held = c.held()
		for _, entry := range failed {
			_, _ = c.describe(ctx, entry) // settle knows whether it is there now
		}
		if c.takeRecovered() && ctx.Err() == nil || held < before {
			recovered()
		}
		next, rest = nil, min(2*rest, maxRest)
		if missing > 0 || held > 0 {
			next = time.After(rest)
		}
	}
}

// missing counts the entries that are not described, and gives those of them
// that could not be.
func (c *Catalog) missing() (n int, failed []config.Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range c.loaded.Tools {
		if _, is := c.failed[entry.Name]; is {
			failed = append(failed, entry)
		}
		if c.finished(entry.Name) == nil {
			n++
		}
	}
	return n, failed
}

// takeRecovered says whether anything has been described that could not be before, be it
// for Retry or for somebody else.
func (c *Catalog) takeRecovered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	recovered := c.recovered
	c.recovered = false
	return recovered
}
