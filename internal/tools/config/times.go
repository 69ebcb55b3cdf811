package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/budget"
)

// profileNames of timeoutKeys: default, min, max and soft in a profile.
var profileRows = map[string]string{"default": "timeout", "min": "minTimeout", "max": "maxTimeout", "soft": "soft"}

// toolName is what a row of a profile is called in a tool.
func toolName(row string) string { return profileRows[row] }

// profileName is the other way round.
func profileName(row string) string {
	for profile, tool := range profileRows {
		if tool == row {
			return profile
		}
	}
	return row
}

// asks turns the settings of one layer into what package budget takes, one each
// so that each keeps its place.
func asks(l layer, rank budget.Rank) []budget.Ask {
	var list []budget.Ask
	for _, k := range timeoutKeys {
		s, ok := l[k.name]
		if !ok {
			continue
		}
		a := budget.Ask{Layer: budget.LayerGlobal, Rank: rank, TimeoutUnset: true, Detail: s.source.Position.String()}
		k.ask(&a, s.data.(time.Duration))
		list = append(list, a)
	}
	return list
}

// profiles makes asks of timeouts, and of what the environment says of calls.
func (b *builder) profiles() {
	config := &b.loaded.Config
	for _, n := range b.root.named["timeouts"] {
		if said := b.profile(b.root.set, n.value, budget.RankProfile); n.value == budget.ToolCall {
			config.Timeouts = append(config.Timeouts, said...)
		} else {
			config.Profiles = with(config.Profiles, n.value, said)
		}
	}
	for _, name := range sortedKeys(b.envProfiles) {
		config.Profiles = with(config.Profiles, name, asks(b.envProfiles[name], budget.RankEnvironment))
	}
	b.checkTimes(b.env, false)
	config.Timeouts = append(config.Timeouts, asks(b.env, budget.RankEnvironment)...)
}

// profile makes asks of what a layer says of one profile.
func (b *builder) profile(l layer, name string, rank budget.Rank) []budget.Ask {
	own := layer{}
	for row, s := range l.below("timeouts." + name) {
		own[toolName(row)] = s
	}
	b.checkProfile(name, own)
	return asks(own, rank)
}

// questions makes asks of what a class or tool says of questions to humans.
func (b *builder) questions(into map[string][]budget.Ask, l layer, rank budget.Rank) map[string][]budget.Ask {
	for _, name := range questionNames.known {
		if said := b.profile(l, name, rank); len(said) > 0 {
			into = with(into, name, said)
		}
	}
	return into
}

// Together puts the asks of two places together, by their profiles.
func Together(a, b map[string][]budget.Ask) map[string][]budget.Ask {
	both := maps.Clone(a)
	for name, said := range b {
		both = with(both, name, said)
	}
	return both
}

// with adds to a map that may be nil.
func with(profiles map[string][]budget.Ask, name string, said []budget.Ask) map[string][]budget.Ask {
	if profiles == nil {
		profiles = map[string][]budget.Ask{}
	}
	profiles[name] = slices.Concat(profiles[name], said)
	return profiles
}

// checkProfile holds the file's own words on a profile against each other and
// against the standard.
func (b *builder) checkProfile(name string, own layer) {
	standard, _ := budget.Standard(name)
	if question, is := budget.Interaction(name); is {
		standard = question
		b.checkQuestion(own)
	}
	lowest, highest := standard.Min, standard.Max
	given := func(row string, into *time.Duration) (setting, bool) {
		s, ok := own[row]
		if ok {
			*into = s.data.(time.Duration)
		}
		return s, ok
	}
	least, hasMin := given("minTimeout", &lowest)
	most, hasMax := given("maxTimeout", &highest)
	switch {
	case lowest <= highest:
	case hasMin:
		b.complain(least.node, "min %s is above max %s of %s: lower it, or set a higher max", budget.Format(lowest), budget.Format(highest), name)
	case hasMax:
		b.complain(most.node, "max %s is below min %s of %s: raise it, or set a lower min", budget.Format(highest), budget.Format(lowest), name)
	}
	timeout := standard.Default
	s, ok := given("timeout", &timeout)
	if !ok || lowest > highest {
		return
	}
	switch {
	case hasMin && timeout < lowest:
		b.complain(s.node, "default %s is below min %s: raise it, or lower min", budget.Format(timeout), budget.Format(lowest))
	case hasMax && timeout > highest:
		b.complain(s.node, "default %s is above max %s: lower it, or raise max", budget.Format(timeout), budget.Format(highest))
	}
}

// checkQuestion holds the words on how long a human is waited for to what holds for
// every interaction.
func (b *builder) checkQuestion(own layer) {
	if s, ok := own["soft"]; ok {
		b.complain(s.node, "a human has no soft budget: take it out")
	}
	for _, row := range []string{"timeout", "minTimeout", "maxTimeout"} {
		if s, ok := own[row]; ok && s.data.(time.Duration) > budget.MaxHumanWait {
			b.warn(s.node, fmt.Sprintf("%s is above the ceiling of every interaction: %s is used", s.text, budget.Format(budget.MaxHumanWait)))
		}
	}
}

// checkTimes holds the timeouts of one class, entry, or the environment against
// each other. Only a tool's own entry may lift its timeout.
func (b *builder) checkTimes(l layer, mayLift bool) {
	timeout, hasTimeout := l["timeout"]
	if hasTimeout && timeout.data == budget.Infinite && !mayLift {
		b.refuse(timeout.node, finiteOnly)
	}
	least, hasMin := l["minTimeout"]
	most, hasMax := l["maxTimeout"]
	in := func(s setting) time.Duration { return s.data.(time.Duration) }
	switch {
	case hasMin && hasMax && in(least) > in(most):
		b.complain(least.node, "minTimeout %s is above maxTimeout %s: lower it, or raise maxTimeout", least.text, most.text)
	case hasTimeout && hasMax && in(timeout) == budget.Infinite:
		b.complain(timeout.node, "timeout infinite and maxTimeout %s contradict one another: take one of them out", most.text)
	case hasTimeout && hasMax && in(timeout) > in(most):
		b.complain(timeout.node, "timeout %s is above maxTimeout %s: lower it, or raise maxTimeout", timeout.text, most.text)
	case hasTimeout && hasMin && in(timeout) < in(least):
		b.complain(timeout.node, "timeout %s is below minTimeout %s: raise it, or lower minTimeout", timeout.text, least.text)
	}
}

// checkResolved warns of what becomes of a tool's timeouts between the layers.
func (b *builder) checkResolved(t *Tool, at *node) {
	profile, _ := budget.Standard(budget.ToolCall)
	resolved := budget.Resolve(profile, slices.Concat(b.loaded.Config.Timeouts, t.Timeouts)...)
	for _, warning := range resolved.Warnings {
		b.warn(at, warning)
	}
}

func (b *builder) warn(n *node, message string) {
	p := n.problem(message)
	if !slices.ContainsFunc(b.loaded.Warnings, func(q Problem) bool { return q.Position == p.Position && q.Message == p.Message }) && len(b.loaded.Warnings) < maxProblems {
		b.loaded.Warnings = append(b.loaded.Warnings, p)
	}
}

// environment reads the TOOLHOST_* variables that the table names.
func (b *builder) environment() {
	g := newGroup("", nil, nil)
	host := newGroup("", nil, nil)
	for _, scope := range []struct {
		keys map[string]*key
		into *group
	}{{toolVariables(), g}, {hostVariables(), host}} {
		for _, path := range sortedKeys(scope.keys) {
			k := scope.keys[path]
			if value, _ := b.machine.lookup(k.variable); value != "" {
				b.outside(k, path, k.variable, []string{value}, LayerEnvironment, scope.into)
			}
		}
	}
	b.env = g.set
	b.root.set.over(host.set)
	b.profileVariables()
}

// profileVariables reads the variables of timeout profiles. That of tool_call is
// the closer one beside $TOOLHOST_TIMEOUT.
func (b *builder) profileVariables() {
	b.envProfiles = map[string]layer{}
	for _, name := range profileNames.known {
		variable := profileVariable(name)
		value, _ := b.machine.lookup(variable)
		if value == "" {
			continue
		}
		g := newGroup("", nil, nil)
		b.outside(find(profileKeys, "default"), toolName("default"), variable, []string{value}, LayerEnvironment, g)
		if name == budget.ToolCall {
			b.env.over(g.set)
		} else {
			b.envProfiles[name] = g.set
		}
	}
}

// toolVariables are the keys of tools that have a variable, hostVariables those
// of the host, by their paths.
func toolVariables() map[string]*key {
	list := map[string]*key{}
	for _, k := range commonKeys {
		if k.variable != "" {
			list[k.name] = k
		}
	}
	return list
}

func hostVariables() map[string]*key {
	list := map[string]*key{}
	walk(rootKeys, "", func(path string, k *key) {
		first, _, _ := strings.Cut(path, ".")
		if k.variable != "" && find(rootKeys, first).names == nil && find(commonKeys, k.name) != k {
			list[path] = k
		}
	})
	return list
}
