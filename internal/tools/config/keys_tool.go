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

// sets1 is for rows that change one thing of a tool.
func sets1(set func(*Tool, setting)) []effect { return []effect{to(set)} }

// turnsChild is the word for turns below a call's own.
const turnsChild = "child"

var behaviourKeys = []*key{
	{
		name: "mode", variable: "TOOLHOST_MODE", kind: enum(string(turn.ModeAllow), string(turn.ModeAsk), string(turn.ModeDeny)),
		std: "(ask for a destructive tool, else allow)", doc: "may it be called: yes, after asking a human, no; a plugin or server that is denied is never run; the variable can only make this stricter",
		sets: sets1(func(t *Tool, s setting) { t.Mode = turn.Mode(s.data.(string)) }),
	},
	{
		name: "deny", kind: patternsKind, names: argumentNames, std: "{}",
		doc:  "deny calls by their arguments, `{path: /etc/**}`, see [rules](#rules-by-argument)",
		sets: sets1(func(t *Tool, s setting) { t.rule(turn.ModeDeny, s) }),
	},
	{
		name: "ask", kind: patternsKind, names: argumentNames, std: "{}",
		doc:  "ask a human by their arguments, `{path: \"!/srv/**\"}`",
		sets: sets1(func(t *Tool, s setting) { t.rule(turn.ModeAsk, s) }),
	},
	{
		name: "destructive", kind: boolKind, std: "(what the tool says)", doc: "whether it destroys things, whatever it says itself",
		sets: sets1(func(t *Tool, s setting) { t.Destructive = new(s.data.(bool)) }),
	},
	{
		name: "readOnly", kind: boolKind, std: "false", doc: "confirms that it changes nothing: a failed call may be retried, calls may run in parallel; it can have no `write`",
		sets: sets1(func(t *Tool, s setting) { t.ReadOnly = s.data.(bool) }),
	},
	{
		name: "idempotent", kind: boolKind, std: "false", doc: "confirms that calling it twice is as calling it once: a failed call may be retried",
		sets: sets1(func(t *Tool, s setting) { t.Idempotent = s.data.(bool) }),
	},
	{
		name: "concurrency", kind: enum(string(Parallel), string(Exclusive)), std: "(exclusive with `write`, `data`, or `mcp` without `readOnly`; else parallel)",
		doc: "whether its calls run alone within their turn; a tool that says so itself does, unless this is `parallel`; of a kept process only `readOnly` calls run at once", sets: sets1(func(t *Tool, s setting) { t.Concurrency = Concurrency(s.data.(string)) }),
	},
	{
		name: "running", kind: countKind, std: "(as many as `admission.running`)", doc: "calls that run at once; of a class, those of all its tools together; others wait, and take no slot from other tools",
		sets: sets1(func(t *Tool, s setting) {
			t.Pool = supervisor.Pool{Name: s.source.String(), Running: int(s.data.(int64))}
		}),
	},
	{
		name: "prestart", kind: countKind, std: "(none)", doc: "processes that wait for its calls in their whole sandbox, each for one: the daemon starts them before, see [prestarted processes](#prestarted-processes)",
		sets: sets1(func(t *Tool, s setting) { t.Prestart = int(s.data.(int64)) }),
	},
	{
		name: "where", kind: textKind, names: labelNames, std: "{}", doc: "the labels of a worker that its calls are to run on, `{gpu: a100}`; `worker` is a worker's name; without any they may run on this machine as well",
		sets: sets1(func(t *Tool, s setting) {
			t.Where = maps.Clone(t.Where) // a class's are not its own
			if t.Where == nil {
				t.Where = map[string]string{}
			}
			t.Where[s.name] = s.data.(string)
		}),
	},
	{
		name: "turns", kind: enum("none", turnsChild), std: "none", doc: "`child` lets a call begin turns below its own and call tools in them, at a socket of its own, see [turns of a tool's own](#turns-of-a-tools-own); not with `keep`",
		sets: sets1(func(t *Tool, s setting) { t.ChildTurns = s.data.(string) == turnsChild }),
	},
	{
		name: "repeatable", kind: boolKind, std: "false", doc: "it may be called with the same arguments more than four times in a turn, as what steps or polls must be",
		sets: sets1(func(t *Tool, s setting) { t.Repeatable = s.data.(bool) }),
	},
}

// The rows of timeouts: in a profile they are called default, min and max.
var timeoutKeys = []*key{
	{
		name: "timeout", systemd: "RuntimeMaxSec", variable: "TOOLHOST_TIMEOUT", kind: timeoutKind, std: "30s",
		doc: "wall-clock limit of a call; `infinite` only in a tool's own entry", ask: func(a *budget.Ask, d time.Duration) { a.Timeout, a.TimeoutUnset = d, false },
	},
	{
		name: "minTimeout", kind: durationKind, std: "1s", doc: "the least that a caller may ask for",
		ask: func(a *budget.Ask, d time.Duration) { a.Min = d },
	},
	{
		name: "maxTimeout", kind: durationKind, std: "1h", doc: "the most that a caller may ask for",
		ask: func(a *budget.Ask, d time.Duration) { a.Max = d },
	},
	{
		name: "soft", variable: "TOOLHOST_SOFT", kind: durationOrInfinite, std: "10s", doc: "soft budget: passing it is reported, nothing else",
		ask: func(a *budget.Ask, d time.Duration) { a.Soft = d },
	},
}

var graceKey = &key{
	name: "grace", variable: "TOOLHOST_GRACE", kind: graceKind, std: "2s", doc: "time between SIGTERM and SIGKILL, 0s to 30s",
	sets: sets1(func(t *Tool, s setting) { t.Grace = s.data.(time.Duration) }),
}

var streamKey = &key{name: "stream", doc: "bounds of what a tool streams", keys: []*key{
	{
		name: "initial", kind: durationKind, std: "(off)", doc: "time to the first message",
		sets: sets1(func(t *Tool, s setting) { t.Stream.Initial = s.data.(time.Duration) }),
	},
	{
		name: "gap", kind: durationKind, std: "(off)", doc: "time between messages; a heartbeat counts as one",
		sets: sets1(func(t *Tool, s setting) { t.Stream.Gap = s.data.(time.Duration) }),
	},
	{
		name: "total", kind: durationKind, std: "(off)", doc: "time from the tool's start; only ever shortens the timeout",
		sets: sets1(func(t *Tool, s setting) { t.Stream.Total = s.data.(time.Duration) }),
	},
}}

var sandboxKeys = []*key{
	{
		name: "tier", kind: enum(sandbox.TierNative, sandbox.TierNone), std: sandbox.TierNative, process: true,
		doc:  "sandbox; `none` leaves files, network and system calls open, and only limits and kills",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Tier = s.data.(string) }),
	},
	{
		name: "read", kind: grants(), std: "[]", process: true, doc: "files and folders that it may read, at their own paths",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Read = hostPaths(s) }),
	},
	{
		name: "write", kind: grants(), std: "[]", process: true, doc: "files and folders that it may change; `workspace` is its own folder, which it has anyway",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Write = hostPaths(s) }),
	},
	networkKey,
	{
		name: "strict", kind: boolKind, std: "false", process: true, doc: "refuse file locks too, by which calls could signal to one another",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Strict = s.data.(bool) }),
	},
	{
		name: "require", kind: featureList(sandbox.FeatureLandlock, sandbox.FeatureLandlockScope), std: "[]", process: true,
		doc:  "refuse to run without these optional features",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Require = s.data.([]string) }),
	},
	{
		name: "allow", kind: featureList(sandbox.SharedUID, sandbox.FeatureLandlockScope), std: "[]", process: true,
		doc:  "accept these degradations of the sandbox; sharedUid is accepted with `read` and `write`",
		sets: sets1(func(t *Tool, s setting) { t.Sandbox.Allow = slices.Clone(s.data.([]string)) }),
	},
	{
		name: "env", kind: variableKind, names: variableNames, std: "{}", process: true, doc: "variables for it, `{NAME: value}` or `[NAME=value, NAME]`; a bare NAME passes the host's on",
		sets: sets1(func(t *Tool, s setting) {
			if v := s.data.(variable); v.set {
				t.Env = append(t.Env, s.name+"="+v.value)
			}
		}),
	},
	{
		name: "dir", kind: dirKind, std: "(the host's if it sees that, else /workspace)", process: true, doc: "working directory, which must have been granted; `workspace` is its own folder",
		sets: sets1(func(t *Tool, s setting) { t.Dir = s.data.(string) }),
	},
	{
		name: "data", kind: boolKind, std: "false", process: true, doc: "keep /workspace from call to call, on disk and without a limit; its calls wait for one another, also across processes, unless `concurrency` is parallel or they are `readOnly`",
		sets: sets1(func(t *Tool, s setting) { t.Data = s.data.(bool) }),
	},
	{
		name: "secrets", names: variableNames, keys: useKeys, process: true, std: "{}",
		doc: "secrets for it: `{API_KEY: {secret: NAME}}` sets a variable",
	},
}

var useKeys = []*key{
	{
		name: "secret", kind: textKind, doc: "the secret's name in `secrets` of the file",
		sets: sets1(func(t *Tool, s setting) { t.use(s.name).Secret = s.data.(string) }),
	},
	{
		name: "as", kind: enum("variable", "file"), std: "variable", doc: "how it is given: in the variable, or in a file whose path is in the variable",
		sets: sets1(func(t *Tool, s setting) { t.use(s.name).File = s.data == "file" }),
	},
}

var variableNames = &names{word: "VARIABLE", pattern: callargs.VariablePattern, check: checkVariable}

// ownVariables are those that the sandbox sets for every tool; another value
// would have no effect.
var ownVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "GOMAXPROCS", "GOMEMLIMIT"}

func checkVariable(name string) string {
	if slices.Contains(ownVariables, name) {
		return "is set by toolhost for every tool, and no other value would reach it: take it out; a command can begin with [env, " + name + "=..., PROGRAM]"
	}
	return callargs.WrongVariable(name)
}

// commonKeys are those of classes, tools and a server's single tools.
var commonKeys = slices.Concat(behaviourKeys, timeoutKeys, []*key{questionsKey, graceKey, streamKey}, limitKeys, sandboxKeys)

var questionsKey = &key{
	name: "timeouts", names: questionNames, keys: questionKeys, short: "default",
	doc: "how long humans are waited for: by the calls that they approve, by questions of the tool, and of a host about it",
}

var nameKeys = []*key{
	{name: "title", kind: textKind, std: "(what the tool says)", doc: "its name for people", sets: sets1(func(t *Tool, s setting) { t.Title = s.data.(string) })},
	{name: "description", kind: textKind, std: "(what the tool says)", doc: "the description shown to models", sets: sets1(func(t *Tool, s setting) { t.Description = s.data.(string) })},
}

// toolKeys are those of an entry in tools.
var toolKeys = slices.Concat(pluginKeys, commandKeys, mcpKeys, []*key{
	{name: "class", kind: textKind, doc: "the class whose settings it begins with", sets: sets1(func(t *Tool, s setting) { t.Class = s.data.(string) })},
}, nameKeys, []*key{
	{name: "sha256", kind: hashKind, std: "(not checked)", doc: "run the executable only if this is its hash; of a pack, its manifest's", sets: sets1(func(t *Tool, s setting) { t.SHA256 = s.data.(string) })},
}, commonKeys)

// serverToolKeys are those of one tool of an MCP server.
var serverToolKeys = slices.Concat([]*key{
	{name: "hidden", kind: boolKind, std: "false", doc: "do not offer it", sets: sets1(func(t *Tool, s setting) { t.Hidden = s.data.(bool) })},
}, nameKeys, commonKeys)

var pluginKeys = []*key{
	{
		name: "plugin", kind: pathKind("path", pathPlugin), doc: "a plugin's executable, or a pack of one", only: TypePlugin,
		sets: sets1(func(t *Tool, s setting) { t.Plugin.Path = s.data.(string) }),
	},
	{
		name: "tool", kind: textKind, std: "(its only one)", doc: "which of the plugin's tools", only: TypePlugin,
		sets: sets1(func(t *Tool, s setting) { t.Plugin.Name = s.data.(string) }),
	},
	{
		name: "args", kind: listOf("list of words", wordKind), std: "[]", doc: "arguments of the plugin's executable", only: TypePlugin,
		sets: sets1(func(t *Tool, s setting) { t.Plugin.Args = s.data.([]string) }),
	},
}

var mcpKeys = []*key{
	{name: "mcp", kind: wordsKind, doc: "an MCP server on stdio: its command", only: TypeMCP},
	{
		name: "prefix", kind: prefixKind, std: "(the entry's name)", doc: "what stands before `__` in its tools' names; \"\" leaves them as they are", only: TypeMCP,
		sets: sets1(func(t *Tool, s setting) { t.MCP.Prefix = s.data.(string) }),
	},
	{
		name: "pin", kind: boolKind, std: "true", doc: "hold a tool back that says something else of itself than when it was accepted, see [mcp-tools.md](mcp-tools.md#pins)", only: TypeMCP,
		sets: sets1(func(t *Tool, s setting) { t.MCP.Unpinned = !s.data.(bool) }),
	},
	{
		name: "keep", kind: boolKind, keys: keepKeys, std: "false", doc: "keep the server's process for later calls, which have it one at a time unless they are `readOnly`", only: TypeMCP,
		sets: sets1(func(t *Tool, s setting) {
			if t.MCP.Keep = nil; s.data.(bool) {
				t.keep()
			}
		}),
	},
	{
		name: "startTimeout", kind: startKind, std: "8s", doc: "how long the server may take to be ready, and then to list its tools; what a call starts also has to be ready within the call's `timeout`", only: TypeMCP,
		sets: sets1(func(t *Tool, s setting) { t.MCP.StartTimeout = s.data.(time.Duration) }),
	},
	{
		name: "tools", names: anyNames, keys: serverToolKeys, groups: true, doc: "settings of single tools of the server, by the names that it gives them", only: TypeMCP,
	},
}

var keepKeys = []*key{
	{
		name: "idle", kind: durationKind, std: "5m", doc: "end the process when it was idle for so long",
		sets: sets1(func(t *Tool, s setting) { t.keep().Idle = s.data.(time.Duration) }),
	},
	{
		name: "maxCalls", kind: countKind, std: "(none)", doc: "end the process after so many calls",
		sets: sets1(func(t *Tool, s setting) { t.keep().MaxCalls = int(s.data.(int64)) }),
	},
}

func (t *Tool) keep() *Keep {
	if t.MCP.Keep == nil {
		t.MCP.Keep = &Keep{}
	}
	return t.MCP.Keep
}
