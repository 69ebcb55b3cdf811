package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/tools/argrule"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	"github.com/toolhost/toolhost/internal/tools/pack"
	"github.com/toolhost/toolhost/internal/tools/pins"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// make describes an entry and makes its tools.
func (c *Catalog) make(ctx context.Context, entry config.Tool) ([]Tool, error) {
	switch entry.Type {
	case config.TypeCommand:
		tool, err := c.command(entry)
		return []Tool{tool}, err
	case config.TypeMCP:
		if c.deniedServer(entry) {
			return nil, nil
		}
		return c.server(ctx, entry)
	}
	if c.denied(entry) {
		return []Tool{c.undescribed(entry.Name, entry)}, nil
	}
	return c.plugin(ctx, entry)
}

func (c *Catalog) plugin(ctx context.Context, entry config.Tool) ([]Tool, error) {
	request, err := c.pluginRequest(entry)
	if err != nil {
		return nil, err
	}
	described, failed := c.host.Describe(ctx, request)
	if failed != nil {
		return nil, &DescribeError{entry, failed}
	}
	own, err := pick(described, entry)
	if err != nil {
		return nil, err
	}
	return []Tool{c.offer(entry.Name, entry, request, own, described)}, nil
}

func (c *Catalog) pluginRequest(entry config.Tool) (supervisor.Request, error) {
	request, err := c.request(entry)
	if err != nil || c.options.Packs == nil || !pack.Is(request.Tool.Path) {
		return request, err
	}
	if request, err = c.options.Packs.Request(request); err != nil {
		return request, fmt.Errorf("tool %s (%s): %w", entry.Name, entry.Source, err)
	}
	return request, nil
}

// pick finds the one tool that an entry means.
func pick(described *supervisor.Description, entry config.Tool) (*pluginv1.ToolDescription, error) {
	want := entry.Plugin.Name
	if own := described.Tool(want); own != nil {
		return own, nil
	}
	if want == "" {
		return nil, fmt.Errorf("tool %s (%s): %s has several tools: name one of %q as tool", entry.Name, entry.Source, entry.Plugin.Path, described.Names())
	}
	return nil, fmt.Errorf("tool %s (%s): %s has no tool %q: it has %q", entry.Name, entry.Source, entry.Plugin.Path, want, described.Names())
}

// server is an MCP server behind its adapter. What would be held back for what it
// has said a while ago is looked at again: something else may be accepted now.
func (c *Catalog) server(ctx context.Context, entry config.Tool) ([]Tool, error) {
	request, err := c.serverRequest(entry)
	if err != nil {
		return nil, err
	}
	tools, remembered, err := c.serverTools(ctx, entry, request)
	if remembered && slices.ContainsFunc(tools, func(t Tool) bool { return t.Held != "" }) {
		request.Anew = true
		tools, _, err = c.serverTools(ctx, entry, request)
	}
	return tools, err
}

func (c *Catalog) serverTools(ctx context.Context, entry config.Tool, request supervisor.Request) (tools []Tool, remembered bool, err error) {
	described, failed := c.host.Describe(ctx, request)
	if failed != nil {
		return nil, false, &DescribeError{entry, startFailure(entry, failed)}
	}
	c.warnAnew(entry.Name)
	for _, warning := range described.Warnings {
		c.warn(entry.Source, entry.Name, "%s", warning)
	}
	c.warnUnused(entry, described)
	c.pin(entry, described)
	c.keepOffers(entry, described.Server)
	var errs []error
	for _, own := range described.Tools {
		tool, offered, err := c.serverTool(entry, own, described)
		if errs = append(errs, err); offered && err == nil {
			tools = append(tools, tool)
		}
	}
	return c.hold(entry, tools), described.Remembered, errors.Join(errs...)
}

// serverTool is one tool of a server. It is not offered if it is hidden, or has
// the name of a tool of toolhost's own or that the file names by itself.
func (c *Catalog) serverTool(entry config.Tool, own *pluginv1.ToolDescription, described *supervisor.Description) (t Tool, offered bool, err error) {
	one := settingsOf(entry, own.GetName())
	if one.Hidden {
		return Tool{}, false, nil
	}
	name := modelName(entry, own.GetName())
	if name == turn.StatusTool {
		c.warn(entry.Source, entry.Name, "the server's tool %s is left out, for toolhost's own tool has its name: give the server a prefix, or hide its tool", name)
		return Tool{}, false, nil
	}
	if first, taken := c.named(name); taken {
		c.warn(entry.Source, entry.Name, "the server's tool %s is left out, for %s (%s) has its name: give the server another prefix, or hide its tool", name, first.Name, first.Source)
		return Tool{}, false, nil
	}
	one.Name = entry.Name // one process, one folder for its data
	request, err := c.serverRequest(one)
	if err != nil {
		return Tool{}, false, err
	}
	request.Tool.Name = own.GetName()
	t = c.offer(name, one, request, own, described)
	t.own, t.pin = own.GetName(), pins.Of(own)
	return t, true, nil
}

// describeMargin lets an adapter say what its server was too slow with, as its
// default start timeout does.
const describeMargin = 2 * time.Second

func (c *Catalog) serverRequest(entry config.Tool) (supervisor.Request, error) {
	request, err := c.request(entry)
	request.Tool.Path = c.options.Adapter
	request.Tool.Args = []string{"adapter", "mcp", "--name", entry.Name}
	if start := entry.MCP.StartTimeout; start > 0 {
		request.Tool.Args = append(request.Tool.Args, "--start-timeout", start.String())
		request.Tool.DescribeTimeout = start + describeMargin
	}
	for _, path := range roots(request.Sandbox) {
		request.Tool.Args = append(request.Tool.Args, "--root", path)
	}
	request.Tool.Args = append(append(request.Tool.Args, "--"), entry.MCP.Argv...)
	request.Tool.Label = fmt.Sprintf("MCP server %q (%s)", entry.Name, entry.MCP.Argv[0]) // arguments may be nobody's business
	request.Tool.Adapter = true
	if c.options.Once && !entry.ChildTurns && request.Keep == nil && request.Lock.File == "" && request.FilesTo == "" {
		request.Keep = &supervisor.Keep{Once: true, Shared: true} // calls do not wait for one another
	}
	if tell := c.options.Notices; tell != nil && request.Keep != nil && !request.Keep.Once {
		keep := *request.Keep
		keep.Notices = func(share, method string, params json.RawMessage) { tell(entry.Name, share, method, params) }
		request.Keep = &keep
	}
	return request, err
}

// roots are the folders that a policy lets a server use.
func roots(policy *supervisor.Policy) []string {
	switch {
	case policy == nil:
		return nil
	case policy.Tier == sandbox.TierNone:
		return []string{"/"}
	}
	return slices.Concat(policy.Write, policy.Read)
}

// modelName is what models call a server's tool.
func modelName(entry config.Tool, own string) string {
	if entry.MCP.Prefix == "" {
		return mcpname.Safe(own)
	}
	return mcpname.ToolName(entry.MCP.Prefix, own)
}

// offer is a tool as turns and models get it.
func (c *Catalog) offer(name string, entry config.Tool, request supervisor.Request, own *pluginv1.ToolDescription, of *supervisor.Description) Tool {
	shown := proto.CloneOf(own)
	shown.Name = name
	if entry.Title != "" {
		shown.Title = entry.Title
	}
	if entry.Description != "" {
		shown.Description = entry.Description
	}
	destructive := own.GetAnnotations().GetDestructive()
	if entry.Destructive != nil {
		destructive = *entry.Destructive
	}
	request.Name = name
	notPrestarted := c.notPrestarted(entry, destructive)
	if notPrestarted != "" {
		request.Prestart = 0
	}
	c.warnRules(entry, own)
	return Tool{
		Tool: turn.Tool{
			Name: name, Request: request, Mode: entry.Mode, Rule: ruleOf(entry, own.GetInputSchema()), Check: checkOf(request, own), Destructive: destructive, ReadOnly: own.GetAnnotations().GetReadOnly(),
			Repeatable: entry.Repeatable, ChildTurns: entry.ChildTurns,
			Exclusive: entry.Exclusive() || entry.Concurrency == "" && own.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE,
		},
		Description: shown, Version: of.Version, SHA256: of.SHA256, Entry: entry, NotPrestarted: notPrestarted,
	}
}

// checkOf refuses a call's arguments before anybody is asked about it.
func checkOf(request supervisor.Request, own *pluginv1.ToolDescription) func(arguments, meta json.RawMessage) error {
	if c := request.Command; c != nil && c.Tool != nil {
		return supervisor.CommandCheck(c.Tool)
	}
	return supervisor.ArgumentCheck(own)
}

// Unlisted is a tool of a plugin that no entry names, under its own name and with the
// settings of all tools.
func (c *Catalog) Unlisted(request supervisor.Request, own *pluginv1.ToolDescription, of *supervisor.Description) Tool {
	request.Tool.Name = own.GetName()
	return c.offer(own.GetName(), c.loaded.Default, request, own, of)
}

// ruleOf judges calls by the entry's rules; nil where it has none. What is
// relative begins in the entry's dir, else in toolhost's own folder or in the
// call's workspace.
func ruleOf(entry config.Tool, schema []byte) func(json.RawMessage) (turn.Mode, string) {
	if len(entry.Rules) == 0 {
		return nil
	}
	of := argrule.Tool{Dirs: []string{entry.Dir}, Defaults: map[string]json.RawMessage{}}
	if entry.Dir == "" {
		here, _ := os.Getwd()
		of.Dirs = []string{here, sandbox.Workspace}
	}
	for name, property := range callargs.Properties(schema) {
		if len(property.Default) > 0 {
			of.Defaults[name] = property.Default
		}
	}
	return func(arguments json.RawMessage) (turn.Mode, string) { return entry.Rules.Judge(arguments, of) }
}
