package gateway

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// Notice takes what a kept process announces, and with an empty method that the process has
// ended. It does not wait.
func (g *Gateway) Notice(from Origin, method string, params json.RawMessage) {
	switch method {
	case "", mcpcall.ServerEnded:
		g.host.Go(func() {
			g.pause(beforeRenewal)
			g.renewSubscriptions(from)
		})
	case resourceUpdated:
		g.updated(source{Origin: from, uri: object.Text(params, "uri")}, params)
	case mcpcall.ElicitationComplete:
		g.completed(from, params)
	case logMessage:
		g.logged(from, params)
	default:
		if IsListChange(method) {
			g.listChanged(from.Entry, method)
		}
	}
}

const (
	resourceUpdated = "notifications/resources/updated"
	logMessage      = "notifications/message"
)

// announce adds something once more that is there: the SDK tells clients then.
func (o *offers) announce(method string) {
	switch method {
	case "notifications/tools/list_changed":
		o.host.ToolsChanged()
	case "notifications/prompts/list_changed":
		o.mu.Lock()
		names := slices.Sorted(maps.Keys(o.listed.Prompts))
		var p mcpsdk.Prompt
		found := len(names) > 0 && json.Unmarshal([]byte(o.listed.Prompts[names[0]].Raw), &p) == nil
		if found {
			p.Meta = verbatim.Meta([]byte(o.listed.Prompts[names[0]].Raw))
		}
		o.mu.Unlock()
		if found {
			o.sdk.AddPrompt(&p, o.get)
		}
	default:
		o.sdk.AddResourceTemplate(unlistedTemplate(), o.read)
	}
}

// logged hands what a kept process logs between calls to the sessions that it may be
// for and that have set a level; the SDK leaves out what is below that.
func (g *Gateway) logged(from Origin, raw json.RawMessage) {
	var m struct {
		Level  mcpsdk.LoggingLevel
		Logger string
		Data   json.RawMessage
	}
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	for one := range g.sdk.Sessions() {
		if share, wanted := g.host.LogsOf(one); !wanted || share != from.Share {
			continue
		}
		p := &mcpsdk.LoggingMessageParams{Level: m.Level, Logger: m.Logger, Data: m.Data, Meta: verbatim.Meta(raw)}
		g.mailboxOf(one).put(letter{bytes: len(raw), send: func() { _ = one.Log(context.Background(), p) }, minor: true})
	}
}
