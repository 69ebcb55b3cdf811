package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// Warnings tell what is left out, or has no effect, as far as tools have been
// described: a server's tool with a broken schema, or with the name of one of
// the file's, and settings for a tool that the server does not offer.
func (c *Catalog) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.warnings)) {
		all = append(all, c.warnings[name]...)
	}
	return all
}

// warnAnew begins the warnings of an entry whose server has said anew what it has: they
// would only grow with each time that it does.
func (c *Catalog) warnAnew(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.former[name] = c.warnings[name]
	delete(c.warnings, name)
}

// warn keeps a warning, and tells it where it is new.
func (c *Catalog) warn(source config.Source, name, format string, args ...any) {
	warning := fmt.Sprintf("tool %s (%s): ", name, source) + fmt.Sprintf(format, args...)
	c.mu.Lock()
	kept := slices.Contains(c.warnings[name], warning)
	if !kept {
		c.warnings[name] = append(c.warnings[name], warning)
	}
	told := kept || slices.Contains(c.former[name], warning)
	c.mu.Unlock()
	if !told && c.options.Warn != nil {
		c.options.Warn(warning)
	}
}

// warnUnused warns of settings for tools that the server does not offer: a
// tool that was to be hidden or denied may have another name. Tools that the
// adapter left out have a warning of their own.
func (c *Catalog) warnUnused(entry config.Tool, described *supervisor.Description) {
	leftOut := func(key string) bool {
		return slices.ContainsFunc(described.Warnings, func(warning string) bool {
			return strings.HasPrefix(warning, mcpname.LeftOut(key))
		})
	}
	var names []string
	for _, d := range described.Tools {
		names = append(names, d.GetName())
	}
	for _, key := range slices.Sorted(maps.Keys(entry.MCP.Tools)) {
		if slices.Contains(names, mcpname.Safe(key)) || leftOut(key) {
			continue
		}
		hint := ""
		if near := config.Nearest(key, names); near != "" {
			hint = fmt.Sprintf(": did you mean %q?", near)
		}
		c.warn(entry.MCP.Tools[key].Source, entry.Name, "tools.%s.tools.%s names no tool that the server offers, and has no effect%s", entry.Name, key, hint)
	}
}

// settingsOf is what an entry says of one tool of its server. The key is the
// server's own name of it, which may not be the one that it passes under.
func settingsOf(entry config.Tool, safe string) config.Tool {
	if _, ok := entry.MCP.Tools[safe]; !ok {
		for key, one := range entry.MCP.Tools {
			if mcpname.Safe(key) == safe {
				return one
			}
		}
	}
	return entry.Of(safe)
}

// warnRules warns of rules for arguments that a tool's schema does not have.
func (c *Catalog) warnRules(entry config.Tool, own *pluginv1.ToolDescription) {
	known := callargs.Types(own.GetInputSchema())
	for _, name := range entry.Rules.Arguments() {
		if _, has := known[name]; !has && len(known) > 0 {
			c.warn(entry.Source, entry.Name, "a rule is for the argument %q, which %s does not have", name, own.GetName())
		}
	}
}
