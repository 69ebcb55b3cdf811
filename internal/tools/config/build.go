package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/turn"
)

// builder makes a Loaded of what was read.
type builder struct {
	*loader
	loaded *Loaded
	base   layer // what the file says for all tools, under their keys
	env    layer // TOOLHOST_* variables for tools
	// envProfiles are those for other timeout profiles than tool_call.
	envProfiles map[string]layer
	given       layer // flags for tools, on top of all else
	classes     map[string]layer
	// forgetful are the servers that may lose what they keep in memory by mistake.
	forgetful      []string
	firstForgetful *node
}

func (b *builder) build() {
	b.base = b.baseOf(b.root.set)
	b.checkAmounts(b.base)
	b.checkAmounts(b.env)
	b.profiles()
	b.host()
	b.loaded.Default = b.tool(Tool{settings: b.effective()})
	b.checkStorage(b.loaded.Default)
	b.loaded.Config.Limits, b.loaded.Config.Grace = b.loaded.Default.Limits, b.loaded.Default.Grace
	b.secrets()
	b.telemetry()
	b.fleet()
	b.daemon()
	b.access()
	b.classes = map[string]layer{}
	for _, g := range b.root.groups["classes"] {
		b.numberDevices(g.set)
		b.classes[g.name] = g.set.named(LayerClass, g.name)
		b.checkAmounts(g.set)
		b.checkTimes(g.set, false)
	}
	for _, g := range b.root.groups["tools"] {
		b.loaded.Tools = append(b.loaded.Tools, b.entry(g))
	}
	b.warnForgetful()
	b.checkUnused()
	b.checkAmounts(b.given)
	b.loaded.Config.Timeouts = append(b.loaded.Config.Timeouts, asks(b.given, budget.RankFlag)...)
	b.overrule(&b.loaded.Default)
	for i := range b.loaded.Tools {
		b.overrule(&b.loaded.Tools[i])
	}
}

// checkUnused looks at what is otherwise looked at for the tools of a class.
func (b *builder) checkUnused() {
	for name, class := range b.classes {
		if !slices.ContainsFunc(b.loaded.Tools, func(t Tool) bool { return t.Class == name }) {
			b.checkGrants(class)
		}
	}
}

// host applies what is not a tool's.
func (b *builder) host() {
	apply(b.loaded, rootKeys, b.root.set)
	totals := b.root.set.below("totals")
	b.numberDevices(totals)
	apply(&b.loaded.Config.Totals, groupKeys, totals)
	for _, s := range totals {
		b.checkTotal(s)
	}
	b.checkTurn()
	b.loaded.set = b.root.set
	for name, own := range b.envProfiles {
		for row, s := range own {
			s.path = "timeouts." + name + "." + profileName(row)
			b.loaded.set[s.path] = s
		}
	}
	for _, k := range commonKeys {
		for _, over := range []layer{b.env, b.given} {
			b.overHost(k, over)
		}
	}
}

// overHost shows a variable or flag among the host's settings, where the file
// has a place for it.
func (b *builder) overHost(k *key, over layer) {
	s, ok := over[k.name]
	if !ok {
		return
	}
	place := "limits."
	switch {
	case k == graceKey:
		place = "kill."
	case k.ask != nil:
		place = "timeouts." + budget.ToolCall + "."
	case find(limitKeys, k.name) != k:
		return
	}
	s.path = place + profileName(k.name)
	b.loaded.set[s.path] = s
}

// baseOf finds what the file says for all tools.
func (b *builder) baseOf(root layer) layer {
	base := layer{}
	for path, s := range root {
		first, rest, _ := strings.Cut(path, ".")
		switch first {
		case "limits", "kill":
			if s.key == ceilingKey {
				continue
			}
			s.path = rest
		case "stream":
		case "timeouts":
			row, ok := strings.CutPrefix(rest, budget.ToolCall+".")
			if !ok {
				continue
			}
			s.path = toolName(row)
			s.key = find(timeoutKeys, s.path)
		default:
			continue
		}
		base[s.path] = s
	}
	b.numberDevices(base)
	return base
}

// below is the part of l under a mapping.
func (l layer) below(path string) layer {
	part := layer{}
	for full, s := range l {
		if rest, ok := strings.CutPrefix(full, path+"."); ok {
			s.path = rest
			part[rest] = s
		}
	}
	return part
}

// effective puts the layers of one tool together; own are class, entry and
// what else is between the file and the environment.
func (b *builder) effective(own ...layer) layer {
	all := layer{}
	all.over(b.base)
	for _, l := range own {
		all.over(l)
	}
	before, had := all["mode"]
	all.over(b.env)
	if s, ok := b.env["mode"]; ok && !stricter(s, before, had) {
		delete(all, "mode")
		if had {
			all["mode"] = before
		}
	}
	return all
}

// stricter says whether a variable's mode is above what the file says: the
// environment may forbid, but not permit, for it is the same for all tools.
func stricter(s, before setting, had bool) bool {
	order := []string{string(turn.ModeAllow), string(turn.ModeAsk), string(turn.ModeDeny)}
	rank := func(s setting) int { return slices.Index(order, s.data.(string)) }
	if !had {
		return rank(s) > 0
	}
	return rank(s) > rank(before)
}

// tool applies t.settings.
func (b *builder) tool(t Tool) Tool {
	apply(&t, toolKeys, t.settings)
	t.acceptShared()
	b.lift(&t)
	return t
}

// lift drops a limit of infinity where no host-wide limit is to be overruled,
// so that results show none.
func (b *builder) lift(t *Tool) {
	if base, ok := b.base["cpuTime"]; t.Limits.CPUTime == budget.Infinite && (!ok || base.data == budget.Infinite) {
		t.Limits.CPUTime = 0
	}
	if base, ok := b.base["outputTotal"]; t.Limits.OutputTotalBytes == unlimitedBytes && (!ok || base.data == unlimitedBytes) {
		t.Limits.OutputTotalBytes = 0
	}
}

// entry builds one of tools.
func (b *builder) entry(g *group) Tool {
	t := Tool{Name: g.name, Source: Source{Layer: LayerTool, Position: g.at.at}, at: g.at, MCP: Server{Prefix: g.name}}
	own := g.set.named(LayerTool, "")
	b.numberDevices(own)
	b.checkAmounts(own)
	b.checkTimes(own, true)
	class := b.classOf(own)
	t.Type = b.typeOf(g)
	t.settings = b.effective(class, own)
	t = b.tool(t)
	t.Timeouts = append(asks(class, budget.RankClass), asks(own, budget.RankTool)...)
	t.Profiles = b.questions(b.questions(nil, class, budget.RankClass), own, budget.RankTool)
	b.finish(&t, g)
	b.checkTool(&t, g)
	if t.Type == TypeMCP {
		b.serverTools(&t, g, class, own)
	}
	return t
}

func (b *builder) classOf(own layer) layer {
	s, ok := own["class"]
	if !ok {
		return nil
	}
	name := s.data.(string)
	class, ok := b.classes[name]
	if !ok {
		var known []string
		for _, g := range b.root.groups["classes"] {
			known = append(known, g.name)
		}
		advice := "there are no classes: write one in classes"
		if len(known) > 0 {
			advice = suggestion(name, known)
		}
		b.complain(s.node, "unknown class %s: %s", quoted(name), advice)
	}
	return class
}

// types are the keys that say what a tool is made of.
var types = []string{string(TypePlugin), string(TypeCommand), string(TypeMCP)}

// typeOf finds the one such key, and refuses keys of the other types.
func (b *builder) typeOf(g *group) Type {
	var given []string
	for _, e := range g.node.entries {
		if slices.Contains(types, e.key.value) {
			given = append(given, e.key.value)
		}
	}
	switch {
	case len(given) == 0:
		b.complain(g.at, "tool %s has nothing to run: set one of %s", quoted(g.name), strings.Join(types, ", "))
		return ""
	case len(given) > 1:
		b.complain(g.at, "tool %s has %s: leave only one of them", quoted(g.name), listed(given, "and"))
		return ""
	}
	for _, e := range g.node.entries {
		k := find(toolKeys, e.key.value)
		if k != nil && k.only != "" && string(k.only) != given[0] {
			b.complain(e.key, "%s is for tools with %s, and this one has %s: take it out", quoted(e.key.value), k.only, given[0])
		}
	}
	return Type(given[0])
}

// serverTools builds what the entry of a server says of single tools.
func (b *builder) serverTools(t *Tool, g *group, class, own layer) {
	tools := map[string]Tool{}
	for _, one := range g.groups["tools"] {
		b.numberDevices(one.set)
		b.checkAmounts(one.set)
		b.checkTimes(one.set, true)
		override := one.set.named(LayerTool, "")
		sub := *t
		sub.Name, sub.Source, sub.at = one.name, Source{Layer: LayerTool, Position: one.at.at}, one.at
		sub = Tool{Name: sub.Name, Source: sub.Source, at: sub.at, Type: t.Type, MCP: Server{Prefix: t.MCP.Prefix}}
		sub.settings = b.effective(class, own, override)
		sub = b.tool(sub)
		sub.Timeouts = append(slices.Clone(t.Timeouts), asks(override, budget.RankTool)...)
		sub.Profiles = b.questions(maps.Clone(t.Profiles), override, budget.RankTool)
		sub.MCP = Server{Argv: t.MCP.Argv, Prefix: t.MCP.Prefix, Keep: t.MCP.Keep, StartTimeout: t.MCP.StartTimeout}
		sub.Title, sub.Description = textOf(override, "title"), textOf(override, "description")
		b.checkServerTool(&sub, t, one)
		tools[one.name] = sub
	}
	t.MCP.Tools = tools
}

func textOf(l layer, path string) string {
	text, _ := l[path].data.(string)
	return text
}
