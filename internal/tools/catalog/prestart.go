package catalog

import (
	"context"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Prestart are the requests for which processes are to wait: those of the entries
// that want that, and whose calls need nobody's consent. It describes them. What
// cannot be described is left out, and calls of it say why.
func (c *Catalog) Prestart(ctx context.Context) (requests []supervisor.Request) {
	for _, entry := range c.loaded.Tools {
		if entry.Prestart == 0 || entry.Type == config.TypeCommand {
			continue
		}
		tools, err := c.describe(ctx, entry)
		if err != nil {
			continue
		}
		for _, tool := range tools {
			// A server's tools have the same process, but for those with settings of their
			// own, which have theirs from their first call on.
			if _, own := entry.MCP.Tools[tool.own]; !own && tool.Request.Prestart > 0 && tool.Held == "" {
				tool.Request.Name = entry.Name
				requests = append(requests, tool.Request)
				break
			}
		}
	}
	return requests
}

// notPrestarted says why no process of a tool is to run before a call of it, whatever
// its request is; empty if one may.
func (c *Catalog) notPrestarted(entry config.Tool, destructive bool) string {
	switch mode := entry.Mode.Of(destructive); {
	case mode == turn.ModeDeny:
		return "its calls are denied"
	case mode == turn.ModeAsk:
		return "a human is asked about each call, and it is not to run with what it is granted before"
	case entry.ChildTurns:
		return "its calls begin turns of their own, at a socket that each has to itself"
	case c.loaded.OnWorkersOnly(entry):
		return "its calls are made by workers, and these start no process before a call"
	}
	return ""
}
