package catalog

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Offered is the tool of a name for a turn, at once: one that nobody has described
// yet has a Describe, beside what the configuration says of it. So has one whose secrets
// are to be read: they may be others than when it was described.
func (c *Catalog) Offered(name string) (turn.Tool, bool) {
	if entry, method, is := c.serverMethod(name); is {
		return c.serverRequestTool(entry, method)
	}
	known, err := c.Known(name)
	if err == nil && len(known.Entry.Secrets) == 0 {
		return known.Tool, true
	}
	if _, none := errors.AsType[*NotFoundError](err); none {
		return turn.Tool{}, false
	}
	t := known.Tool
	if err != nil {
		t = c.sketch(name)
	}
	t.Describe = func(ctx context.Context) (*turn.Tool, *api.Result) { return c.described(ctx, name) }
	return t, true
}

// sketch returns what is known of a tool before its Describe: the settings
// shared by all entries that it can come from.
func (c *Catalog) sketch(name string) turn.Tool {
	t := turn.Tool{Name: name, Repeatable: true}
	for i, h := range c.holders(name) {
		entry := h.tool
		mode := entry.Mode
		if mode == "" && entry.Destructive != nil && *entry.Destructive {
			mode = turn.ModeAsk
		}
		if i > 0 && mode != t.Mode {
			mode = ""
		}
		t.Mode, t.Exclusive, t.Repeatable = mode, t.Exclusive || entry.Exclusive(), t.Repeatable && entry.Repeatable
		t.Rule = nil
		if i == 0 {
			t.Rule = ruleOf(*entry, nil) // what the schema's defaults would add holds once there is a schema
		}
	}
	return t
}

// described is Find for a turn.
func (c *Catalog) described(ctx context.Context, name string) (*turn.Tool, *api.Result) {
	found, err := c.Find(ctx, name)
	if err == nil {
		err = c.giveSecrets(&found.Request, found.Entry)
	}
	if err == nil {
		return &found.Tool, nil
	}
	if failed, ok := errors.AsType[*DescribeError](err); ok {
		return nil, failed.Result
	}
	if _, none := errors.AsType[*NotFoundError](err); none {
		return nil, nil
	}
	return nil, notStarted(name, err)
}

func notStarted(name string, err error) *api.Result {
	return supervisor.Verdict{
		Tool: name, Status: api.StatusStartFailed, Reason: api.ReasonTool,
		Message: "[FAILED] The tool cannot be started: " + err.Error() + ". Nothing was changed.",
	}.Result()
}

// denied says that an entry may not be called, and so is not run to be described
// either; a command is never run for that.
func (c *Catalog) denied(entry config.Tool) bool {
	return entry.Mode == turn.ModeDeny && entry.Type != config.TypeCommand
}

// deniedServer says so of all tools of a server, whatever they are.
func (c *Catalog) deniedServer(entry config.Tool) bool {
	for _, one := range entry.MCP.Tools {
		if !one.Hidden && !c.denied(one) {
			return false
		}
	}
	return c.denied(entry)
}

// undescribed is a tool that is denied, with what the configuration says of it.
func (c *Catalog) undescribed(name string, entry config.Tool) Tool {
	request := entry.Request()
	if entry.Type == config.TypeMCP {
		request.Tool.Path = c.options.Adapter
	}
	return c.offer(name, entry, request, &pluginv1.ToolDescription{InputSchema: []byte(`{"type":"object"}`)}, &supervisor.Description{})
}

// settingsFor is what an entry says of the tool that models call by a name: of a
// server what it says of that tool, or of all that it doesn't name.
func settingsFor(entry *config.Tool, name string) *config.Tool {
	if entry.Type != config.TypeMCP {
		return entry
	}
	for key, one := range entry.MCP.Tools {
		if modelName(*entry, mcpname.Safe(key)) == name || modelName(*entry, key) == name {
			one.Name = entry.Name
			return &one
		}
	}
	return entry
}
