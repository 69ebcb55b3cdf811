package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/turn"
)

// toolOf is a tool as clients get it. Hints are the tool's own claims with the
// operator's word on top; without any there are no annotations.
func toolOf(t catalog.Tool) *mcpsdk.Tool {
	d := t.Description
	tool := &mcpsdk.Tool{Name: t.Name, Title: d.GetTitle(), Description: d.GetDescription(), InputSchema: json.RawMessage(`{"type":"object"}`)}
	if meta := verbatim.Meta(d.GetExtra()); len(meta) > 0 { // a wrapped server's own
		tool.Meta = meta
	}
	tool.Icons = directory.Icons(object.Of(d.GetExtra())["icons"])
	if len(d.GetInputSchema()) > 0 {
		tool.InputSchema = strictSchema(d.GetInputSchema())
	}
	if len(d.GetOutputSchema()) > 0 {
		tool.OutputSchema = strictSchema(d.GetOutputSchema())
	}
	a := d.GetAnnotations()
	known := a != nil && (a.ReadOnly != nil || a.Destructive != nil || a.Idempotent != nil || a.OpenWorld != nil)
	if !known && !t.Destructive && !t.Request.Tool.ReadOnly && !t.Request.Tool.Idempotent {
		return tool
	}
	tool.Annotations = &mcpsdk.ToolAnnotations{
		Title:        tool.Title, // where clients of 2025-03-26 look for it
		ReadOnlyHint: a.GetReadOnly() || t.Request.Tool.ReadOnly, IdempotentHint: a.GetIdempotent() || t.Request.Tool.Idempotent,
	}
	if a != nil {
		tool.Annotations.DestructiveHint, tool.Annotations.OpenWorldHint = a.Destructive, a.OpenWorld
	}
	if t.Destructive {
		tool.Annotations.DestructiveHint = new(true)
	}
	return tool
}

// ownOfTools are the fields of a tool that toolhost writes itself, or that say what it
// does not do: what a tool adds does not change them.
var ownOfTools = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "_meta", "icons"}

// extraOf are further fields of a wrapped server's tool, as it has written them.
func extraOf(t catalog.Tool) object.Fields {
	return object.Of(t.Description.GetExtra()).Without(ownOfTools...)
}

func isObject(schema []byte) bool {
	var s struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// acceptable says why the SDK would not take a tool: it panics then.
func acceptable(tool *mcpsdk.Tool) (err error) {
	if tool.Name == turn.StatusTool {
		return fmt.Errorf("%q is the name of a tool of toolhost's own: call it something else", turn.StatusTool)
	}
	if !isObject(tool.InputSchema.(json.RawMessage)) {
		return errors.New("its input schema is not of type object, which MCP demands")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be offered: %v", p)
		}
	}()
	mcpsdk.NewServer(&mcpsdk.Implementation{}, nil).AddTool(tool, nil)
	return nil
}

// offer is a tool that clients know.
type offer struct {
	tool      *mcpsdk.Tool
	exclusive bool
	caller    string // the tool of the short list that calls it
	output    outputCheck
	raw       string        // the tool as JSON
	extra     object.Fields // that it has in its own protocol
	entry     string        // the configuration's
}

func (s *Server) newOffer(t catalog.Tool) (offer, error) {
	if t.Held != "" {
		return offer{}, &catalog.HeldError{Tool: t}
	}
	tool := toolOf(t)
	s.gateway.RenameMeta(t.Entry.Name, tool.Meta)
	if err := acceptable(tool); err != nil {
		return offer{}, fmt.Errorf("tool %s (%s): %w", t.Name, t.Entry.Source, err)
	}
	raw, err := json.Marshal(tool)
	if err != nil {
		return offer{}, fmt.Errorf("tool %s (%s): %w", t.Name, t.Entry.Source, err)
	}
	o := offer{tool: tool, exclusive: t.Exclusive, caller: callerOf(t, tool), output: newOutputCheck(tool.OutputSchema), raw: string(raw), extra: extraOf(t), entry: t.Entry.Name}
	o.output.wrapped = t.Entry.Type == config.TypeMCP
	return o, nil
}

func (s *Server) offerOf(name string) offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered[name]
}
