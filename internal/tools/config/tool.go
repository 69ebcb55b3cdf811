package config

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/tools/argrule"
	"github.com/toolhost/toolhost/internal/tools/command"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Type says what a tool is made of.
type Type string

// Types of tools.
const (
	TypePlugin  Type = "plugin"
	TypeCommand Type = "command"
	TypeMCP     Type = "mcp"
)

// Concurrency says whether a tool's calls run alone within their turn.
type Concurrency string

// Values of Concurrency; empty is what Tool.Exclusive says.
const (
	Parallel  Concurrency = "parallel"
	Exclusive Concurrency = "exclusive"
)

// Tool is an entry of tools with everything that holds for it: class, host-wide
// settings, environment and flags included. A value that nobody has set is
// zero, which is the default of the package that takes it.
type Tool struct {
	// Name is what models call it. For TypeMCP it is the server's; Prefix says
	// how its tools are called.
	Name string
	// Source is where the entry stands.
	Source Source
	Type   Type
	Class  string
	// Title and Description replace those of the tool itself; empty leaves them.
	Title, Description string

	// One of them is set, by Type.
	Plugin  supervisor.Tool // its ReadOnly and Idempotent are not set here
	Command command.Spec
	MCP     Server

	Mode turn.Mode
	// Rules make Mode stricter for single calls.
	Rules argrule.List
	// Destructive is the operator's word; nil leaves the tool's own.
	Destructive *bool
	// ReadOnly and Idempotent are the operator's confirmation.
	ReadOnly, Idempotent bool
	Concurrency          Concurrency
	// Pool bounds how many calls of the class, or else of the entry, run at once.
	Pool supervisor.Pool
	// Placement has the labels that the worker of a call must have, and how many
	// processes wait for calls.
	supervisor.Placement
	// ChildTurns lets calls begin turns below their own.
	ChildTurns bool
	// Repeatable tools are left alone by the guard against repeated calls.
	Repeatable bool
	// Hidden is a server's tool that is not offered.
	Hidden bool

	// Timeouts are the asks of class and entry; those of file, environment and
	// flags are in Loaded.Config.
	Timeouts []budget.Ask
	// Profiles are those of questions to humans, by the names of package budget.
	Profiles map[string][]budget.Ask
	Grace    time.Duration
	Stream   budget.Stream
	Limits   supervisor.Limits
	Sandbox  supervisor.Policy
	// Env is KEY=VALUE, sorted.
	Env []string
	// Dir is absolute, or empty.
	Dir    string
	SHA256 string
	// Data: the workspace is kept from call to call; see SharesData.
	Data    bool
	Secrets []SecretUse

	settings layer // in force, for explaining
	at       *node // where it is named; nil for Loaded.Default
}

func (t *Tool) path() string {
	if t.at == nil {
		return ""
	}
	return t.at.path
}

// Server is an MCP server.
type Server struct {
	Argv []string
	// Prefix stands before "__" in the names of its tools; empty leaves their
	// own.
	Prefix string
	// Unpinned: what it says of its tools may change from start to start.
	Unpinned bool
	// Keep is nil for a process of each call's own.
	Keep *Keep
	// StartTimeout is how long it may take to be ready, and then to list its
	// tools; zero is the adapter's own.
	StartTimeout time.Duration
	// Tools has what the entry says of single tools, by the server's own names.
	// Each is the whole Tool, entry included; see Tool.Of.
	Tools map[string]Tool
}

// Keep lets a server's process live on; zero fields are the supervisor's own.
type Keep struct {
	Idle     time.Duration
	MaxCalls int
}

// SecretUse is a secret that a tool is given.
type SecretUse struct {
	// Variable holds the secret, or the path of a file with it if File is true.
	Variable, Secret string
	File             bool
}

// use finds or adds what a variable is given.
func (t *Tool) use(variable string) *SecretUse {
	i := slices.IndexFunc(t.Secrets, func(u SecretUse) bool { return u.Variable == variable })
	if i < 0 {
		t.Secrets = append(t.Secrets, SecretUse{Variable: variable})
		i = len(t.Secrets) - 1
	}
	return &t.Secrets[i]
}

// Of is the tool of a server by the server's own name for it: with what the
// entry says of that tool, else as the entry itself.
func (t Tool) Of(name string) Tool {
	if one, ok := t.MCP.Tools[name]; ok {
		return one
	}
	return t
}

// Exclusive says whether calls run alone within their turn, as far as the
// operator is concerned. A tool's own claim to be exclusive counts on top,
// unless Concurrency is Parallel.
func (t Tool) Exclusive() bool {
	switch {
	case t.Concurrency != "":
		return t.Concurrency == Exclusive
	case t.ReadOnly:
		return false
	}
	return len(t.Sandbox.Write) > 0 || t.Data || t.Type == TypeMCP
}

// SharesData says whether calls with Data may use the folder at the same time:
// those that only read, and those that the operator lets run in parallel.
func (t Tool) SharesData() bool { return t.ReadOnly || t.Concurrency == Parallel }

// Request is what every call of the tool begins with. Of a plugin it is
// complete but for the arguments; of a command, Command is left to be set from
// the arguments, and of a server Tool and Name. Secrets are not in it, nor the
// folder that Data wants.
func (t Tool) Request() supervisor.Request {
	r := supervisor.Request{
		Name: t.Name, Timeouts: slices.Clone(t.Timeouts), Profiles: t.Profiles, Stream: t.Stream, Grace: t.Grace, Limits: t.Limits,
		Sandbox: new(t.Sandbox), Env: slices.Clone(t.Env), Dir: t.Dir, SHA256: t.SHA256, Pool: t.Pool, Placement: t.Placement,
	}
	if t.Type == TypePlugin {
		r.Tool = t.Plugin
	}
	r.Tool.ReadOnly, r.Tool.Idempotent = t.ReadOnly, t.Idempotent
	if k := t.MCP.Keep; k != nil {
		// One call at a time, unless the operator says that they only read.
		r.Keep = &supervisor.Keep{Idle: k.Idle, MaxCalls: k.MaxCalls, Shared: t.ReadOnly}
	}
	return r
}

// Values lists all settings of the tool with their sources, by their keys as for Value and
// in the order of the table of keys; built-in ones, too, where they are values.
func (t Tool) Values() []Value {
	all := builtIn(commonKeys)
	all.over(t.settings)
	return all.values(toolKeys, "")
}

// Value finds one of Values by its key: "timeout", "stream.gap", "memory".
func (t Tool) Value(key string) (Value, bool) {
	s, ok := t.settings[key]
	if !ok {
		s, ok = builtIn(commonKeys)[key]
	}
	if !ok {
		return Value{}, false
	}
	return s.value(t.path()), true
}

// hostPaths are the granted paths without the word for the call's own folder.
func hostPaths(s setting) []string {
	return slices.DeleteFunc(slices.Clone(s.data.([]string)), func(path string) bool {
		return path == workspaceWord && s.source.Layer != LayerFlag
	})
}

// Problem is a mistake in a tool of the file, with its place.
func (t Tool) Problem(wrong error) Problem { return t.at.problem(oneLine(wrong.Error())) }
