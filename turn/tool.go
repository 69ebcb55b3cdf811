package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Mode says whether a tool may be called.
type Mode string

// Modes. An empty one is ModeAsk for a tool that is Destructive, else
// ModeAllow. One that is unknown denies.
const (
	ModeAllow Mode = "allow" // call it
	ModeAsk   Mode = "ask"   // ask a human first; headless, that is a denial
	ModeDeny  Mode = "deny"  // never call it, nor run it to describe it
)

// known is false for a mistyped one, which must not allow what was to be denied.
func (m Mode) known() bool {
	return m == "" || m == ModeAllow || m == ModeAsk || m == ModeDeny
}

// Of resolves a mode that is not given: destructive tools ask, others are allowed.
func (m Mode) Of(destructive bool) Mode {
	if m == "" && destructive {
		return ModeAsk
	}
	return cmp.Or(m, ModeAllow)
}

// Tool is one that the operator offers to turns.
type Tool struct {
	// Name is what the model calls it.
	Name string
	// Request is what each call of it begins with: binary or command, limits,
	// sandbox, timeouts. The turn fills in arguments, ids and events, and an empty Name.
	Request supervisor.Request
	Mode    Mode
	// Rule, if not nil, judges a call by its arguments: a mode that is stricter
	// than the tool's holds for it, and rule says where it comes from.
	Rule func(arguments json.RawMessage) (mode Mode, rule string)
	// Check, if not nil, refuses arguments before a human is asked to approve
	// them. The supervisor checks those of every call.
	Check func(arguments, meta json.RawMessage) error
	// Held, if not empty, says why no call of it may be made for now.
	Held string
	// Destructive is the tool's own explicit claim.
	Destructive bool
	// ReadOnly is the tool's own claim; what the operator confirms is
	// Request.Tool.ReadOnly. A call of any other tool resets the repeat guard.
	ReadOnly bool
	// Exclusive tools run alone within their turn. Tools that may write
	// should be. A call whose server waits for an answer and has no process left
	// does not run: others do meanwhile, and then it waits in line again.
	Exclusive bool
	// Repeatable tools may be called with the same arguments again and again, as
	// those that step or poll are: the repeat guard leaves them alone.
	Repeatable bool
	// ChildTurns lets a call of it begin turns below its own, by Config.Child.
	ChildTurns bool
	// Describe, if not nil, finds out what is not known of the tool yet. It gives
	// the tool without Describe; or nothing, if no tool has the name; or the
	// result of a call that cannot be made. It is called, on a goroutine of its
	// own, for a call that nothing known before refuses, and must return soon once
	// ctx ends. Until it is back the other fields hold; an exclusive call behind
	// waits for it, since this one may have to run first, and the others do not.
	Describe func(ctx context.Context) (*Tool, *api.Result)
}

func (t Tool) mode() Mode {
	if t.Held != "" || !t.Mode.known() {
		return ModeDeny
	}
	return t.Mode.Of(t.Destructive)
}

// whyDenied is why no call is allowed.
func (t Tool) whyDenied() string {
	if t.Held != "" {
		return "the tool is held back: " + t.Held
	}
	if !t.Mode.known() {
		return fmt.Sprintf("its mode %q is unknown: the host must give it %s, %s or %s", t.Mode, ModeAllow, ModeAsk, ModeDeny)
	}
	return "the operator does not allow this tool"
}

// modeOf is the mode for one call, and the rule that it comes from, if any.
func (t Tool) modeOf(arguments json.RawMessage) (mode Mode, rule string) {
	own := t.mode()
	if t.Rule == nil || own == ModeDeny {
		return own, ""
	}
	switch mode, rule = t.Rule(arguments); {
	case mode == ModeDeny || mode == ModeAsk:
		return mode, rule
	case !mode.known():
		return ModeDeny, fmt.Sprintf("%s (its mode %q is unknown)", cmp.Or(rule, "of the host"), mode)
	}
	return own, ""
}

// Call is one tool call that a model asked for.
type Call struct {
	// ID is the model's own for it, unique in its turn.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Arguments are a JSON object; nil is {}. Meta is one beside them.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	// Client is what an adapter is to know of who asks, as in supervisor.Request.
	Client json.RawMessage `json:"-"`
	// Problem, if not empty, says why the call cannot be made: its result is
	// then invalid_args. The parser of the call sets it.
	Problem string `json:"-"`
	// TraceParent is the W3C trace context that the call belongs to; empty means
	// none, as does one of more than 128 bytes. It is for Config.Observe, and the tool
	// finds it, or what Config.Trace makes of it, as traceparent in Meta.
	TraceParent string `json:"-"`
	// Place, if not nil, waits for the call's place beside those of other turns,
	// once nobody is asked about it any more. ctx ends when the call does; an
	// error refuses it.
	Place func(ctx context.Context) error `json:"-"`
	// Leave, if not nil, gives that place back while the call's server waits for an
	// answer without a process; then Place is called again. It must not wait. The place
	// that a call has at its end is the host's to give back.
	Leave func() `json:"-"`
	// Before is how often the host has seen the same call before, in other turns
	// of the same conversation: the repeat guard counts on from there.
	Before int `json:"-"`
	// Retry says that the host makes the call again after a failure, which the model
	// knows nothing about: the repeat guard does not count it.
	Retry bool `json:"-"`
	// Until is how long the caller waits for the result.
	Until Until `json:"-"`
}
