package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// earlier is what an entry had in the configuration before.
type earlier struct {
	tools  []Tool
	offers *pluginv1.Server
}

// Inherit has lists show what the entries had in the catalog before, until they are
// described here: clients would lose the tools of slow servers with each reload. Calls go by
// what the entries are now. It must come before anything else.
func (c *Catalog) Inherit(before *Catalog) {
	for _, entry := range c.loaded.Tools {
		if old, ok := before.loaded.Tool(entry.Name); ok && listedAlike(*old, entry) {
			if had, ok := before.had(entry.Name); ok {
				c.earlier[entry.Name] = had
			}
		}
	}
}

func (c *Catalog) had(name string) (had earlier, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.finished(name); k != nil {
		return earlier{k.tools, c.offers[name]}, true
	}
	had, ok = c.earlier[name]
	return had, ok
}

// listedAlike says whether two entries are of one program, and say the same of what lists
// show of it.
func listedAlike(a, b config.Tool) bool {
	return a.Type == b.Type && a.Plugin.Path == b.Plugin.Path && a.Plugin.Name == b.Plugin.Name && slices.Equal(a.Plugin.Args, b.Plugin.Args) &&
		slices.Equal(a.MCP.Argv, b.MCP.Argv) && a.MCP.Prefix == b.MCP.Prefix &&
		shownOf(a) == shownOf(b) && maps.EqualFunc(a.MCP.Tools, b.MCP.Tools, func(a, b config.Tool) bool { return shownOf(a) == shownOf(b) })
}

// shown is what an entry says of its tools where they are listed.
type shown struct {
	title, description           string
	readOnly, idempotent, hidden bool
	destructive, said            bool
}

func shownOf(t config.Tool) shown {
	return shown{t.Title, t.Description, t.ReadOnly, t.Idempotent, t.Hidden, t.Destructive != nil && *t.Destructive, t.Destructive != nil}
}

// list is describe for what may do without this entry. Once ctx has ended, it gives what is
// known.
func (c *Catalog) list(ctx context.Context, entry config.Tool) ([]Tool, error) {
	c.mu.Lock()
	last, failed := c.failed[entry.Name]
	c.mu.Unlock()
	if failed && (time.Now().Before(last.rest) || ctx.Err() != nil && !last.rest.IsZero()) {
		return nil, last.err
	}
	if ctx.Err() == nil {
		if tools, err := c.describe(ctx, entry); err == nil || ctx.Err() == nil {
			return tools, err
		}
	}
	c.mu.Lock()
	had := c.earlier[entry.Name]
	c.mu.Unlock()
	return c.release(entry, had.tools), notDescribed(entry, context.Cause(ctx))
}

func notDescribed(entry config.Tool, why error) error {
	return fmt.Errorf("tool %s (%s) is not described yet: %w", entry.Name, entry.Source, why)
}
