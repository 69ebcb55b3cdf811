package config

import (
	"maps"
	"slices"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// turnsChild is the word for turns below a call's own.
const turnsChild = "child"

var behaviourKeys = []*key{
	{
		name: "mode", variable: "TOOLHOST_MODE", kind: enum(string(turn.ModeAllow), string(turn.ModeAsk), string(turn.ModeDeny)),
		std: "(ask for a destructive tool, else allow)", doc: "whether calls are allowed, need a human's approval, or are denied; a denied plugin or server is never run; the variable can only make this stricter",
		sets: to(func(t *Tool, s setting) { t.Mode = turn.Mode(s.data.(string)) }),
	},
	{
		name: "deny", kind: patternsKind, names: argumentNames, std: "{}",
		doc:  "deny calls by their arguments, `{path: /etc/**}`, see [rules](#rules-by-argument)",
		sets: to(func(t *Tool, s setting) { t.rule(turn.ModeDeny, s) }),
	},
	{
		name: "ask", kind: patternsKind, names: argumentNames, std: "{}",
		doc:  "ask a human by their arguments, `{path: \"!/srv/**\"}`",
		sets: to(func(t *Tool, s setting) { t.rule(turn.ModeAsk, s) }),
	},
	{
		name: "destructive", kind: boolKind, std: "(what the tool says)", doc: "whether it is destructive, whatever it says itself",
		sets: to(func(t *Tool, s setting) { t.Destructive = new(s.data.(bool)) }),
	},
	field(key{name: "readOnly", kind: boolKind, std: "false", doc: "confirms that it changes nothing: a failed call may be retried, calls may run in parallel; it can have no `write`"},
		func(t *Tool) *bool { return &t.ReadOnly }),
	field(key{name: "idempotent", kind: boolKind, std: "false", doc: "confirms that calling it twice has the effect of calling it once: a failed call may be retried"},
		func(t *Tool) *bool { return &t.Idempotent }),
	{
		name: "concurrency", kind: enum(string(Parallel), string(Exclusive)), std: "(exclusive with `write`, `data`, or `mcp` without `readOnly`; else parallel)",
		doc: "whether its calls run alone within their turn; a tool that asks for that does, unless this is `parallel`; in a kept process only `readOnly` calls run at the same time", sets: to(func(t *Tool, s setting) { t.Concurrency = Concurrency(s.data.(string)) }),
	},
	{
		name: "running", kind: countKind, std: "(as many as `admission.running`)", doc: "calls that run at once, for a class those of all its tools together; others wait, without a slot",
		sets: to(func(t *Tool, s setting) {
			t.Pool = supervisor.Pool{Name: s.source.pool(), Running: int(s.data.(int64))}
		}),
	},
	intField(key{name: "prestart", kind: prestartKind, std: "(none)", doc: "processes that the daemon starts in advance, each for one call, see [prestarted processes](#prestarted-processes)"},
		func(t *Tool) *int { return &t.Prestart }),
	{
		name: "where", kind: textKind, names: labelNames, std: "{}", doc: "labels of the workers that its calls run on, `{gpu: a100}`; `worker` is a worker's name; without any, calls may run on this machine as well",
		sets: to(func(t *Tool, s setting) {
			t.Where = maps.Clone(t.Where) // a class's are not its own
			put(&t.Where, s.name, s.data.(string))
		}),
	},
	{
		name: "turns", kind: enum("none", turnsChild), std: "none", doc: "`child` lets a call begin turns below its own and call tools in them, at a socket of its own, see [turns of a tool's own](#turns-of-a-tools-own); not with `keep`",
		sets: to(func(t *Tool, s setting) { t.ChildTurns = s.data.(string) == turnsChild }),
	},
	field(key{name: "repeatable", kind: boolKind, std: "false", doc: "whether it may be called more than four times with the same arguments in a turn, as tools that step or poll are"},
		func(t *Tool) *bool { return &t.Repeatable }),
}

// The rows of timeouts: in a profile they are called default, min and max.
var timeoutKeys = []*key{
	{
		name: "timeout", systemd: "RuntimeMaxSec", variable: "TOOLHOST_TIMEOUT", kind: timeoutKind, std: "30s",
		doc: "wall-clock limit of a call; `infinite` only in a tool's own entry", ask: func(a *budget.Ask, d time.Duration) { a.Timeout, a.TimeoutUnset = d, false },
	},
	{
		name: "minTimeout", kind: durationKind, std: "1s", doc: "the shortest that a caller may ask for",
		ask: func(a *budget.Ask, d time.Duration) { a.Min = d },
	},
	{
		name: "maxTimeout", kind: durationKind, std: "1h", doc: "the longest that a caller may ask for",
		ask: func(a *budget.Ask, d time.Duration) { a.Max = d },
	},
	{
		name: "soft", variable: "TOOLHOST_SOFT", kind: durationOrInfinite, std: "10s", doc: "soft budget: a call over it is reported, and goes on",
		ask: func(a *budget.Ask, d time.Duration) { a.Soft = d },
	},
}

var graceKey = &key{
	name: "grace", variable: "TOOLHOST_GRACE", kind: graceKind, std: "2s", doc: "time between SIGTERM and SIGKILL, 0s to 30s",
	sets: to(func(t *Tool, s setting) { t.Grace = s.data.(time.Duration) }),
}

var streamKey = &key{name: "stream", doc: "bounds of what a tool streams", keys: []*key{
	field(key{name: "initial", kind: durationKind, std: "(off)", doc: "time to the first message"},
		func(t *Tool) *time.Duration { return &t.Stream.Initial }),
	field(key{name: "gap", kind: durationKind, std: "(off)", doc: "time between messages; a heartbeat counts as one"},
		func(t *Tool) *time.Duration { return &t.Stream.Gap }),
	field(key{name: "total", kind: durationKind, std: "(off)", doc: "time from the tool's start; can only shorten the timeout"},
		func(t *Tool) *time.Duration { return &t.Stream.Total }),
}}

var sandboxKeys = []*key{
	field(key{name: "tier", kind: enum(sandbox.TierNative, sandbox.TierNone), std: sandbox.TierNative, process: true, doc: "sandbox; `none` restricts no files, network or system calls, and only limits and kills"},
		func(t *Tool) *string { return &t.Sandbox.Tier }),
	{
		name: "read", kind: grants(), std: "[]", process: true, doc: "files and folders that it may read, at their own paths",
		sets: to(func(t *Tool, s setting) { t.Sandbox.Read = slices.Concat(t.Sandbox.Read, hostPaths(s)) }),
	},
	{
		name: "write", kind: grants(), std: "[]", process: true, doc: "files and folders that it may change; `workspace` is its own folder, which it has anyway",
		sets: to(func(t *Tool, s setting) { t.Sandbox.Write = slices.Concat(t.Sandbox.Write, hostPaths(s)) }),
	},
	networkKey,
	field(key{name: "strict", kind: boolKind, std: "false", process: true, doc: "deny file locks too, by which calls could signal to one another"},
		func(t *Tool) *bool { return &t.Sandbox.Strict }),
	{
		name: "require", kind: featureList(sandbox.FeatureLandlock, sandbox.FeatureLandlockScope), std: "[]", process: true,
		doc:  "refuse to run without these optional features",
		sets: to(func(t *Tool, s setting) { t.Sandbox.Require = slices.Concat(t.Sandbox.Require, s.data.([]string)) }),
	},
	{
		name: "allow", kind: featureList(sandbox.SharedUID, sandbox.FeatureLandlockScope), std: "[]", process: true,
		doc:  "accept these degradations of the sandbox; sharedUid is accepted with `read` and `write`",
		sets: to(func(t *Tool, s setting) { t.Sandbox.Allow = slices.Concat(t.Sandbox.Allow, s.data.([]string)) }),
	},
	{
		name: "env", kind: variableKind, names: variableNames, std: "{}", process: true, doc: "variables for it, `{NAME: value}` or `[NAME=value, NAME]`; a bare NAME passes the host's on",
		sets: to(func(t *Tool, s setting) {
			if v := s.data.(variable); v.set {
				t.Env = append(t.Env, s.name+"="+v.value)
			}
		}),
	},
	field(key{name: "dir", kind: dirKind, std: "(the host's if it sees that, else /workspace)", process: true, doc: "working directory, which must be granted; `workspace` is its own folder"},
		func(t *Tool) *string { return &t.Dir }),
	field(key{name: "data", kind: boolKind, std: "false", process: true, doc: "keep /workspace from call to call, on disk and without a limit; its calls wait for one another, also across processes, unless `concurrency` is parallel or they are `readOnly`"},
		func(t *Tool) *bool { return &t.Data }),
	{
		name: "secrets", names: variableNames, keys: useKeys, process: true, std: "{}",
		doc: "secrets for it: `{API_KEY: {secret: NAME}}` sets a variable",
	},
}

var useKeys = []*key{
	{
		name: "secret", kind: textKind, doc: "the secret's name in `secrets` of the file",
		sets: to(func(t *Tool, s setting) { t.use(s.name).Secret = s.data.(string) }),
	},
	{
		name: "as", kind: enum("variable", "file"), std: "variable", doc: "how it is passed: in the variable, or in a file whose path is in the variable",
		sets: to(func(t *Tool, s setting) { t.use(s.name).File = s.data == "file" }),
	},
}

var variableNames = &names{word: "VARIABLE", pattern: callargs.VariablePattern, check: WrongVariable}

// ownVariables are those that the sandbox sets for every tool, by its user, folders and
// limits: other values are for a single call (--env) to ask for.
var ownVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "GOMAXPROCS", "GOMEMLIMIT"}

// WrongVariable says what keeps a name from being that of a variable for a tool; empty is
// nothing.
func WrongVariable(name string) string {
	if slices.Contains(ownVariables, name) {
		return "is set by toolhost for every tool: take it out; a command can begin with [env, " + name + "=..., PROGRAM]"
	}
	return callargs.WrongVariable(name)
}

// commonKeys are those of classes, tools and a server's single tools.
var commonKeys = slices.Concat(behaviourKeys, timeoutKeys, []*key{questionsKey, graceKey, streamKey}, limitKeys, sandboxKeys)

var questionsKey = &key{
	name: "timeouts", names: questionNames, keys: questionKeys, short: "default",
	doc: "how long to wait for humans: for approvals of calls, questions of the tool, and questions of a host about it",
}

var nameKeys = []*key{
	{name: "title", kind: textKind, std: "(what the tool says)", doc: "its name for people", sets: to(func(t *Tool, s setting) { t.Title = s.data.(string) })},
	{name: "description", kind: textKind, std: "(what the tool says)", doc: "the description shown to models", sets: to(func(t *Tool, s setting) { t.Description = s.data.(string) })},
}

// toolKeys are those of an entry in tools.
var toolKeys = slices.Concat(pluginKeys, commandKeys, mcpKeys, []*key{
	{name: "class", kind: textKind, doc: "the class whose settings it begins with", sets: to(func(t *Tool, s setting) { t.Class = s.data.(string) })},
}, nameKeys, []*key{
	{name: "sha256", kind: hashKind, std: "(not checked)", doc: "run the executable only if this is its hash; of a pack, its manifest's", sets: to(func(t *Tool, s setting) { t.SHA256 = s.data.(string) })},
}, commonKeys)

// serverToolKeys are those of one tool of an MCP server.
var serverToolKeys = slices.Concat([]*key{
	{name: "hidden", kind: boolKind, std: "false", doc: "do not offer it", sets: to(func(t *Tool, s setting) { t.Hidden = s.data.(bool) })},
}, nameKeys, commonKeys)

var pluginKeys = []*key{
	field(key{name: "plugin", kind: pathKind("path", pathPlugin), doc: "a plugin's executable, or a pack of one", only: TypePlugin},
		func(t *Tool) *string { return &t.Plugin.Path }),
	field(key{name: "tool", kind: textKind, std: "(its only one)", doc: "which of the plugin's tools", only: TypePlugin},
		func(t *Tool) *string { return &t.Plugin.Name }),
	field(key{name: "args", kind: listOf("list of words", wordKind), std: "[]", doc: "arguments of the plugin's executable", only: TypePlugin},
		func(t *Tool) *[]string { return &t.Plugin.Args }),
}

var mcpKeys = []*key{
	{name: "mcp", kind: wordsKind, doc: "an MCP server on stdio: its command", only: TypeMCP},
	field(key{name: "prefix", kind: prefixKind, std: "(the entry's name)", doc: "prefix of its tools' names, before `__`; \"\" leaves them as they are", only: TypeMCP},
		func(t *Tool) *string { return &t.MCP.Prefix }),
	{
		name: "pin", kind: boolKind, std: "true", doc: "hold back a tool whose description has changed since it was accepted, see [mcp-tools.md](mcp-tools.md#pins)", only: TypeMCP,
		sets: to(func(t *Tool, s setting) { t.MCP.Unpinned = !s.data.(bool) }),
	},
	{
		name: "keep", kind: boolKind, keys: keepKeys, std: "false", doc: "keep the server's process for later calls, one at a time unless they are `readOnly`", only: TypeMCP,
		sets: to(func(t *Tool, s setting) {
			if t.MCP.Keep = nil; s.data.(bool) {
				t.keep()
			}
		}),
	},
	field(key{name: "startTimeout", kind: startKind, std: "8s", doc: "how long the server may take to be ready, and then to list its tools; one that a call starts must also be ready within the call's `timeout`", only: TypeMCP},
		func(t *Tool) *time.Duration { return &t.MCP.StartTimeout }),
	{
		name: "tools", names: anyNames, keys: serverToolKeys, groups: true, doc: "settings of single tools of the server, by its names for them", only: TypeMCP,
	},
}

var keepKeys = []*key{
	{
		name: "idle", kind: durationKind, std: "5m", doc: "end the process when it has been idle for this long",
		sets: to(func(t *Tool, s setting) { t.keep().Idle = s.data.(time.Duration) }),
	},
	{
		name: "maxCalls", kind: countKind, std: "(none)", doc: "end the process after this many calls",
		sets: to(func(t *Tool, s setting) { t.keep().MaxCalls = int(s.data.(int64)) }),
	},
}

func (t *Tool) keep() *Keep {
	if t.MCP.Keep == nil {
		t.MCP.Keep = &Keep{}
	}
	return t.MCP.Keep
}
