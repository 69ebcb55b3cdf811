package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pins"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// HeldError says that a tool is held back: its server says something else of it
// than what was accepted.
type HeldError struct {
	Tool Tool
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("tool %s (%s) is held back: %s", e.Tool.Name, e.Tool.Entry.Source, e.Tool.Held)
}

// Pins is where those of a server are kept; false where there is no place, or
// none are to be.
func (c *Catalog) Pins(entry config.Tool) (pins.File, bool) {
	if c.options.State == "" || entry.Type != config.TypeMCP || entry.MCP.Unpinned {
		return pins.File{}, false
	}
	return pins.In(c.options.State, c.loaded.Path, entry.Name), true
}

// pin pins what a server says of its tools the first time.
func (c *Catalog) pin(entry config.Tool, described *supervisor.Description) {
	file, ok := c.Pins(entry)
	offers := pins.OfOffers(described.Server)
	if !ok || len(described.Tools)+len(offers) == 0 {
		return
	}
	tools := maps.Clone(offers)
	for _, own := range described.Tools {
		tools[own.GetName()] = pins.Of(own)
	}
	c.mu.Lock()
	c.said[entry.Name] = tools
	c.mu.Unlock()
	if err := file.First(tools); err != nil {
		c.warn(entry.Source, entry.Name, "what its tools say is not kept, and a change of it goes unseen: %v", err)
		return
	}
	if err := file.Extend(offers); err != nil {
		if _, unreadable := file.Read(); unreadable == nil { // else hold says so
			c.warn(entry.Source, entry.Name, "what it says beside its tools cannot be kept, and is held back where it is not: %v", err)
		}
	}
}

// pinned is what is pinned of an entry's server, or why that cannot be read; any is
// false if there is nothing to hold what it says to.
func (c *Catalog) pinned(entry config.Tool) (pinned map[string]pins.Tool, any bool, err error) {
	file, ok := c.Pins(entry)
	if !ok {
		return nil, false, nil
	}
	pinned, err = file.Read()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // another user's state, as pin has warned
		return nil, false, nil
	}
	return pinned, true, err
}

// hold says of a server's tools which are held back, by what is pinned now.
func (c *Catalog) hold(entry config.Tool, tools []Tool) []Tool {
	pinned, any, err := c.pinned(entry)
	if !any || len(tools) == 0 {
		return tools
	}
	held := slices.Clone(tools)
	for i, t := range held {
		held[i].Held = why(t, pinned, err)
	}
	return held
}

// free are a server's offers without prompts, templates and instructions that say
// something else than what is pinned now; held says why of each.
func (c *Catalog) free(entry config.Tool, o *pluginv1.Server) (free *pluginv1.Server, held []string) {
	pinned, any, err := c.pinned(entry)
	if !any || o == nil {
		return o, nil
	}
	passes := func(key string, said pins.Tool) bool {
		reason := why(Tool{own: key, pin: said, Entry: entry}, pinned, err)
		if reason != "" {
			held = append(held, fmt.Sprintf("%s of %s (%s) is held back: %s", key, entry.Name, entry.Source, reason))
		}
		return reason == ""
	}
	keep := func(list [][]byte, of func([]byte) (string, pins.Tool)) (kept [][]byte) {
		for _, raw := range list {
			if passes(of(raw)) {
				kept = append(kept, raw)
			}
		}
		return kept
	}
	instructions := o.GetInstructions()
	if instructions != "" && !passes(pins.OfInstructions(instructions)) {
		instructions = ""
	}
	free = &pluginv1.Server{
		Instructions: instructions, Protocol: o.GetProtocol(), Capabilities: o.GetCapabilities(), Resources: o.GetResources(),
		Prompts: keep(o.GetPrompts(), pins.OfPrompt), Templates: keep(o.GetTemplates(), pins.OfTemplate),
	}
	return free, held
}

// release is hold for tools that were held back: they may have been accepted.
func (c *Catalog) release(entry config.Tool, tools []Tool) []Tool {
	if slices.ContainsFunc(tools, func(t Tool) bool { return t.Held != "" }) {
		return c.hold(entry, tools)
	}
	return tools
}

// why is the reason that a tool is held back for; empty if it is not.
func why(t Tool, pinned map[string]pins.Tool, err error) string {
	if err != nil {
		return fmt.Sprintf("what was accepted of its server cannot be read: %v; look at it with toolhost tools --diff %s, and accept it with toolhost tools --accept %s", err, t.Entry.Name, t.Entry.Name)
	}
	what := "it was not there"
	if before, known := pinned[t.own]; known {
		var parts []string
		for _, change := range pins.Changes(before, t.pin) {
			parts = append(parts, change.Part)
		}
		if len(parts) == 0 {
			return ""
		}
		what = "it had another " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s when the server's tools were accepted; look at it with toolhost tools --diff %s, and accept it with toolhost tools --accept %s; for a server that says something else at each start, and is trusted, set pin: false", what, t.Entry.Name, t.Entry.Name)
}

// withoutHeld takes out the tools that are held back.
func withoutHeld(tools []Tool, problems []error) (free []Tool, all []error) {
	if !slices.ContainsFunc(tools, func(t Tool) bool { return t.Held != "" }) {
		return tools, problems
	}
	for _, t := range tools {
		if t.Held != "" {
			problems = append(problems, &HeldError{t})
			continue
		}
		free = append(free, t)
	}
	return free, problems
}

// held counts the tools that are.
func (c *Catalog) held() (n int) {
	for _, entry := range c.loaded.Tools {
		tools, _ := c.peek(entry)
		for _, t := range tools {
			if t.Held != "" {
				n++
			}
		}
	}
	for _, one := range c.Servers() {
		n += len(one.Held)
	}
	return n
}

// Own is a server's own name of its tool; empty for tools of other kinds.
func (t Tool) Own() string { return t.own }

// Pinned are the MCP servers whose tools are.
func (c *Catalog) Pinned() (list []config.Tool) {
	for _, entry := range c.loaded.Tools {
		if _, ok := c.Pins(entry); ok {
			list = append(list, entry)
		}
	}
	return list
}

// Said is what a server says of all of its tools, by its own names, hidden ones
// included.
func (c *Catalog) Said(ctx context.Context, entry config.Tool) (map[string]pins.Tool, error) {
	if _, err := c.describe(ctx, entry); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said[entry.Name], nil
}
