package config

import (
	"encoding/json"
	"strconv"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/tools/command"
)

var commandKeys = []*key{
	{name: "command", kind: wordsKind, doc: "a command; `{name}` in a word is an argument of the tool", only: TypeCommand},
	field(key{name: "shell", kind: boolKind, std: "false", doc: "run the command, one text, with `sh -c`; arguments are variables of that shell", only: TypeCommand},
		func(t *Tool) *bool { return &t.Command.Shell }),
	{name: "params", names: paramNames, keys: paramKeys, std: "(a string for each placeholder)", doc: "the tool's arguments", only: TypeCommand},
	field(key{name: "stdin", kind: textKind, std: "(empty)", doc: "the argument that the command reads from stdin", only: TypeCommand},
		func(t *Tool) *string { return &t.Command.Stdin }),
	{
		name: "format", kind: enum(string(command.FormatText), string(command.FormatJSON), string(command.FormatNDJSON)), std: string(command.FormatText),
		doc: "what the command writes to stdout", only: TypeCommand,
		sets: to(func(t *Tool, s setting) { t.Command.Format = command.Format(s.data.(string)) }),
	},
	{
		name: "exitCodes", kind: enum("ok", "error"), names: codeNames, keys: codeKeys, std: "{0: ok}", doc: "what exit statuses mean: `{1: ok}`, `{1: {ok: true, message: no match}}`", only: TypeCommand,
		sets: to(func(t *Tool, s setting) { t.outcome(s.name, func(o *command.Outcome) { o.OK = s.data == "ok" }) }),
	},
	field(key{name: "timeoutArgument", kind: textKind, std: "(none)", doc: "the argument with which a model asks for a timeout, in milliseconds", only: TypeCommand},
		func(t *Tool) *string { return &t.Command.TimeoutArgument }),
}

// outcome changes what an exit status means.
func (t *Tool) outcome(code string, change func(*command.Outcome)) {
	number, _ := strconv.Atoi(code)
	o := t.Command.ExitCodes[number]
	change(&o)
	put(&t.Command.ExitCodes, number, o)
}

var codeKeys = []*key{
	{
		name: "ok", kind: boolKind, std: "false", doc: "whether it counts as success",
		sets: to(func(t *Tool, s setting) { t.outcome(s.name, func(o *command.Outcome) { o.OK = s.data.(bool) }) }),
	},
	{
		name: "message", kind: textKind, std: "(none)", doc: "what the model is told",
		sets: to(func(t *Tool, s setting) { t.outcome(s.name, func(o *command.Outcome) { o.Message = s.data.(string) }) }),
	},
}

const codePattern = `^(0|[1-9][0-9]{0,2})$`

var codeForm = lazy.Regexp(codePattern)

var codeNames = &names{word: "CODE", pattern: codePattern, check: func(name string) string {
	if n, err := strconv.Atoi(name); err == nil && n <= 255 && codeForm().MatchString(name) {
		return ""
	}
	return "is not an exit status: write a number from 0 to 255"
}}

var paramNames = namesLike("NAME", `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`, "is not a name of an argument: write a letter or _, then letters, digits, _ and -, 64 at most")

var paramKeys = []*key{
	{
		name: "type", kind: enum(command.TypeString, command.TypeInteger, command.TypeNumber, command.TypeBoolean, command.TypeArray), std: command.TypeString,
		doc: "its type", sets: to(func(p *command.Param, s setting) { p.Type = s.data.(string) }),
	},
	field(key{name: "description", kind: textKind, doc: "the description shown to models"},
		func(p *command.Param) *string { return &p.Description }),
	field(key{name: "enum", kind: jsonListKind, std: "(any)", doc: "the values allowed"},
		func(p *command.Param) *[]json.RawMessage { return &p.Enum }),
	field(key{name: "default", kind: jsonKind, std: "(none)", doc: "its default value"},
		func(p *command.Param) *json.RawMessage { return &p.Default }),
	{
		name: "required", kind: boolKind, std: "(true without a default, but for a boolean)", doc: "whether it is required",
		sets: to(func(p *command.Param, s setting) { p.Required = new(s.data.(bool)) }),
	},
	field(key{name: "items", kind: enum(command.TypeString, command.TypeInteger, command.TypeNumber, command.TypeBoolean), std: command.TypeString, doc: "the type of an array's items"},
		func(p *command.Param) *string { return &p.Items }),
	field(key{name: "allowDash", kind: boolKind, std: "false", doc: "allow values that begin with -, options included"},
		func(p *command.Param) *bool { return &p.AllowDash }),
	{
		name: "min", kind: numberKind, std: "(none)", doc: "the smallest number allowed",
		sets: to(func(p *command.Param, s setting) { p.Min = new(s.data.(float64)) }),
	},
	{
		name: "max", kind: numberKind, std: "(none)", doc: "the largest number allowed",
		sets: to(func(p *command.Param, s setting) { p.Max = new(s.data.(float64)) }),
	},
	field(key{name: "pattern", kind: textKind, std: "(any)", doc: "a regular expression (RE2) that it must match"},
		func(p *command.Param) *string { return &p.Pattern }),
}
