package daemon

import (
	"cmp"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// offered returns a tool as clients see it.
func offered(t catalog.Tool) api.Tool {
	d := t.Description
	claims := cmp.Or(d.GetAnnotations(), &pluginv1.Annotations{})
	timeout := budget.Resolve(toolCall, append(t.Request.Timeouts[:len(t.Request.Timeouts):len(t.Request.Timeouts)], wish(d))...)
	return api.Tool{
		Name: t.Name, Title: d.GetTitle(), Description: d.GetDescription(), InputSchema: d.GetInputSchema(), OutputSchema: d.GetOutputSchema(),
		Annotations: api.Annotations{ReadOnly: claims.ReadOnly, Destructive: claims.Destructive, Idempotent: claims.Idempotent, OpenWorld: claims.OpenWorld},
		Mode:        string(t.Mode.Of(t.Destructive)), Exclusive: t.Exclusive, TimeoutMs: finite(timeout.Timeout), MaxTimeoutMs: finite(timeout.Max), Source: source(t.Entry),
	}
}

var toolCall, _ = budget.Standard(budget.ToolCall)

// wish returns the tool's own wish for its timeout.
func wish(d *pluginv1.ToolDescription) budget.Ask {
	hints := d.GetTimeouts()
	ask := budget.Ask{Layer: budget.LayerHint, Timeout: milliseconds(hints.GetTimeoutMs()), Soft: milliseconds(hints.GetSoftBudgetMs())}
	ask.TimeoutUnset = ask.Timeout <= 0
	return ask
}

func milliseconds(ms int64) time.Duration {
	if ms > int64(budget.Infinite/time.Millisecond) {
		return budget.Infinite
	}
	return time.Duration(ms) * time.Millisecond
}

func finite(d time.Duration) *int64 {
	if d == budget.Infinite {
		return nil
	}
	return new(d.Milliseconds())
}

// source says where a tool comes from.
func source(entry config.Tool) string {
	switch entry.Type {
	case config.TypeCommand:
		return "command " + strings.Join(entry.Command.Argv[:min(1, len(entry.Command.Argv))], " ")
	case config.TypeMCP:
		return "MCP server " + entry.Name
	}
	return "plugin " + entry.Plugin.Path
}
