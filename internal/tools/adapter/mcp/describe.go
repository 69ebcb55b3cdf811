package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

// function is what a raw tool does.
type function = func(context.Context, json.RawMessage, *plugin.Output) (json.RawMessage, error)

// describe lists the server's tools; calling gives the function of a safe name.
func (s *session) describe(ctx context.Context, calling func(string) function) (plugin.Listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.StartTimeout, errListTimeout) // for all lists together
	defer cancel()
	l, err := s.list(ctx)
	if err != nil {
		return plugin.Listing{}, err
	}
	out := plugin.Listing{}
	out.Version = text.Begin(s.server.ServerInfo.Version, 200)
	out.Server = s.offers(ctx, l)
	for _, t := range l.tools {
		tool, err := l.tool(t, calling(t.safe))
		if err != nil {
			l.warn("%s%v", mcpname.LeftOut(t.Name), err)
			continue
		}
		out.Tools = append(out.Tools, tool)
	}
	out.Warnings = l.warnings
	for _, warning := range out.Warnings {
		s.notes.add("lists its tools with a fault: " + warning)
	}
	if len(out.Tools) == 0 && !offersAny(out.Server) {
		what := "offers no tools"
		if len(out.Warnings) > 0 {
			what = "offers no tools that can be used: " + out.Warnings[0]
		}
		return plugin.Listing{}, s.failure(plugin.StartFailed, what, nil)
	}
	return out, nil
}

func (l *listing) tool(t listed, do function) (plugin.Registered, error) {
	if t.Execution.TaskSupport == "required" {
		return plugin.Registered{}, errors.New("it runs only as a task (execution.taskSupport), and toolhost runs no tasks of MCP's")
	}
	input, output := l.mend(t.Name, t.InputSchema, true), t.OutputSchema
	if len(output) > 0 {
		output = l.mend(t.Name, output, false)
		if _, err := schema.Parse(output); err != nil {
			l.warn("tool %q goes without its output schema: %v", t.Name, err)
			output = nil
		}
	}
	title := cmp.Or(t.Title, t.Annotations.Title)
	if title == "" && t.safe != t.Name {
		title = t.Name
	}
	extra, err := t.extra()
	if err != nil {
		return plugin.Registered{}, err
	}
	tool, err := plugin.NewRawTool(plugin.Tool{Name: t.safe, Title: title, Description: t.Description, Exclusive: t.changes(), Extra: extra}, input, output, do)
	if err == nil {
		tool.Describe().Annotations = t.claims()
	}
	return tool, err
}

// claims are the server's hints as it has written them: false says more than nothing, for
// MCP's defaults of two are true.
func (t listed) claims() *pluginv1.Annotations {
	a := t.Annotations
	return &pluginv1.Annotations{ReadOnly: a.ReadOnlyHint, Destructive: a.DestructiveHint, Idempotent: a.IdempotentHint, OpenWorld: a.OpenWorldHint}
}

// knownOfTools are the fields of a tool that a description has places for, or that say
// what toolhost does not do.
var knownOfTools = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"}

// extra is what a tool's description has beside what toolhost knows.
func (t listed) extra() (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(t.raw, &fields); err != nil {
		return nil, err
	}
	for _, name := range knownOfTools {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}

// changes is the tool's own word that it changes things. What says nothing is
// left to the host, which is told by its operator.
func (t listed) changes() bool {
	if hint := t.Annotations.ReadOnlyHint; hint != nil {
		return !*hint
	}
	return t.claims().GetDestructive()
}

// mend changes what hosts would refuse and servers often have: no schema or
// type at all where there are no arguments, bounds of draft 4, and patterns in
// JavaScript's form of regular expressions and types of its own, by which only the
// server itself can validate.
func (l *listing) mend(tool string, raw json.RawMessage, input bool) json.RawMessage {
	var s map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if len(raw) > 0 && decoder.Decode(&s) != nil {
		return raw // to be refused
	}
	dropped, changed := loosen(s)
	if dropped > 0 {
		l.warn("tool %q: %d patterns or types of a schema are checked by the server alone: they are not regular expressions in Go, or not types of JSON Schema", tool, dropped)
	}
	if s == nil {
		s = map[string]any{}
	}
	_, typed := s["type"]
	if !changed && (typed || !input) {
		return raw
	}
	if input && !typed {
		s["type"] = "object"
	}
	mended, err := json.Marshal(s)
	if err != nil {
		return raw
	}
	return mended
}
