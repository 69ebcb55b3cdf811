// Package command turns a command line with typed parameters into a tool,
// without a shell in between. It is pure: it checks a Spec, makes its JSON
// Schema, renders a call's arguments into an argument vector and stdin, and
// parses what the command wrote. It starts no process.
//
// Each word of Argv is a template:
//
//	{name}         the value of a parameter; a word whose parameter is absent is left out
//	{name...}      the word once for each item of an array: "{paths...}", "--glob={globs...}"
//	{name?--flag}  the whole word --flag if name is true (a boolean) or given (any other)
//	{{ and }}      a literal brace
//
// An optional option is written "--max-count={max}", or as two words that come
// and go together: "{max?-m}", "{max}".
//
// A value is never parsed again and never becomes more than its place in one
// word. One that would begin its word with "-", and so could be read as an
// option, is refused unless
//   - a literal word -- stands before it, that ends the command's options;
//   - the parameter allows it (AllowDash), or the value stands in its Enum;
//   - the word is the argument of an interpreter's option such as python3 -c.
//
// What it cannot see: a program of another name that runs code or treats some
// plain word as more than data (find's "(", curl's @file, a script's own
// tricks). An empty value stays an empty word; Pattern "." forbids it.
package command

import (
	"encoding/json"
)

// Spec is a command tool as configured. It is data: Check it once, then use it
// from any goroutine. Schema and Build of a Spec with problems fail closed.
type Spec struct {
	// Argv is the command and its arguments, templates as the package describes
	// them; the command itself must be literal. With Shell it is one script.
	Argv []string
	// Shell runs Argv[0] as the script of sh -c. The script is taken as it stands: no
	// placeholders, braces mean what they mean to sh. Each declared parameter but
	// stdin's is a shell variable of its name (unset if absent), true or false for a
	// boolean; the items of the array (at most one) are "$@". Values come as positional
	// arguments and are assigned from them, so no value is ever shell text; the script
	// must quote them ("$name"), and keep strings out of $(( )) and eval. Names are
	// lower case, so that none is a variable that sh or the system knows.
	Shell bool
	// Stdin names the parameter that the command reads from stdin, as "text" or
	// "{text}". Empty: stdin is empty.
	Stdin string
	// Params are the declared parameters. One that is only used in Argv or
	// Stdin is inferred: {name} is a required string, {name...} a required array
	// of strings, {name?--flag} alone an optional boolean; both {name?-x} and
	// {name} an optional string.
	Params []Param
	// Format is what the command writes to stdout; FormatText if empty.
	Format Format
	// ExitCodes say what an exit status means; by default only 0 is a
	// success.
	ExitCodes map[int]Outcome
	// TimeoutArgument names the integer argument, in milliseconds, by which the
	// model asks for a timeout of its own; empty means none. It is for the host: the
	// command sees it only where Argv uses it.
	TimeoutArgument string
}

// Program is what is looked up and executed.
func (s Spec) Program() string {
	switch {
	case s.Shell:
		return "sh"
	case len(s.Argv) == 0:
		return ""
	}
	w, err := parseWord(s.Argv[0])
	if err != nil {
		return s.Argv[0] // Check refuses it
	}
	return w.prefix()
}

// Param is one parameter.
type Param struct {
	// Name begins with a letter or _, and goes on with letters, digits, _ and
	// -, 64 at most; with Shell a lower-case letter, then lower-case letters,
	// digits and _.
	Name string
	// Type is string (the default), integer, number, boolean or array. Numbers
	// reach the command as they stand in the JSON text; an integer must be
	// written in plain digits.
	Type        string
	Description string
	// Enum lists the allowed values; of an array, of each item. Being the
	// operator's own, they may begin with "-".
	Enum []json.RawMessage
	// Default is taken where the argument is absent; nil means none.
	Default json.RawMessage `json:",omitempty"` // across the wire, absent is not null
	// Required is by default true without a Default, but false for a boolean.
	Required *bool
	// Items is the type of an array's items, string by default.
	Items string
	// AllowDash lets values begin with "-", options included.
	AllowDash bool
	// Min and Max bound numbers, inclusive; of an array, each item.
	Min, Max *float64
	// Pattern is a regular expression (RE2) that a string, or each item, must
	// match somewhere; ^ and $ make it match the whole.
	Pattern string
}

// The types of parameters.
const (
	TypeString  = "string"
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeArray   = "array"
)

// Format is how a command's stdout is read.
type Format string

const (
	// FormatText is text, shown as it comes.
	FormatText Format = "text"
	// FormatJSON is one JSON value, the structured result.
	FormatJSON Format = "json"
	// FormatNDJSON is one JSON value a line, shown as they come.
	FormatNDJSON Format = "ndjson"
)

// Outcome is what an exit status means: grep's 1 is OK with the message "no
// match".
type Outcome struct {
	OK      bool
	Message string // for the model; may be empty
}

// Exit says what an exit status means.
func (s Spec) Exit(code int) Outcome {
	if outcome, ok := s.ExitCodes[code]; ok {
		return outcome
	}
	if code == 0 {
		return Outcome{OK: true}
	}
	return Outcome{}
}

// Problem is a mistake in a Spec.
type Problem struct {
	// Path leads to it: "argv[2]", "params.code.type", "params[1].name" where
	// the name is what is wrong, "exitCodes.300", "stdin".
	Path string
	// Text says what is wrong, with the value and the remedy.
	Text string
}

func (p Problem) String() string { return p.Path + ": " + p.Text }

// Built is one call's command.
type Built struct {
	Argv  []string
	Stdin []byte
}

// ArgumentError says, for the model, which argument breaks which rule.
type ArgumentError struct {
	// Param is empty where the arguments as a whole are at fault.
	Param  string
	Reason string
}

func (e *ArgumentError) Error() string {
	if e.Param == "" {
		return e.Reason
	}
	return e.Param + " " + e.Reason
}
