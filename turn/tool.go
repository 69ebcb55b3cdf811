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

// Modes. An empty mode means ModeAsk for a tool that is Destructive, else
// ModeAllow. An unknown mode means ModeDeny.
const (
	ModeAllow Mode = "allow" // call it
	ModeAsk   Mode = "ask"   // ask a human first; in a headless turn, deny it
	ModeDeny  Mode = "deny"  // never run it, not even to describe it
)

// known is false for a mistyped mode, which must not allow what should be denied.
func (m Mode) known() bool {
	return m == "" || m == ModeAllow || m == ModeAsk || m == ModeDeny
}

// Of returns m or, if it is empty, the default: ModeAsk for destructive tools, else ModeAllow.
func (m Mode) Of(destructive bool) Mode {
	if m == "" && destructive {
		return ModeAsk
	}
	return cmp.Or(m, ModeAllow)
}

// Tool is a tool that the operator offers to turns.
type Tool struct {
	// Name is the name that the model uses.
	Name string
	// Request is the template of the tool's calls: binary or command, limits,
	// sandbox, timeouts. The turn fills in arguments, IDs, events, and an empty Name.
	Request supervisor.Request
	Mode    Mode
	// Rule, if not nil, returns a mode for a call by its arguments. The mode applies
	// if it is stricter than the tool's; rule says where it comes from.
	Rule func(arguments json.RawMessage) (mode Mode, rule string)
	// Check, if not nil, checks arguments before a human is asked to approve
	// them. The supervisor checks the arguments of every call.
	Check func(arguments, meta json.RawMessage) error
	// Held, if not empty, says why the tool may not be called for now.
	Held string
	// Destructive is the tool's own explicit claim.
	Destructive bool
	// ReadOnly is the tool's own claim; the operator's confirmation is
	// Request.Tool.ReadOnly. A call of any other tool resets the repeat guard.
	ReadOnly bool
	// Exclusive tools run alone within their turn. Tools that may write
	// should be exclusive. While a call's server waits for an answer without a
	// process, other calls run, and then the call waits in line again.
	Exclusive bool
	// Repeatable turns the repeat guard off, for tools that are meant to be called
	// with the same arguments again and again, such as to step or poll.
	Repeatable bool
	// ChildTurns allows the tool's calls to begin child turns, by Config.Child.
	ChildTurns bool
	// Describe, if not nil, completes a tool that is not fully known. It returns
	// the tool, without Describe; or nil and nil if no tool has the name; or the
	// result of a call that cannot be made. It is called on its own goroutine for
	// each call that the other fields do not refuse, and must return soon after
	// ctx ends. Until it returns the other fields apply. Later exclusive calls wait
	// for it, since this call may have to run first; other calls do not.
	Describe func(ctx context.Context) (*Tool, *api.Result)
}

func (t Tool) mode() Mode {
	if t.Held != "" || !t.Mode.known() {
		return ModeDeny
	}
	return t.Mode.Of(t.Destructive)
}

// whyDenied says why the tool may not be called.
func (t Tool) whyDenied() string {
	if t.Held != "" {
		return "the tool is held back: " + t.Held
	}
	if !t.Mode.known() {
		return fmt.Sprintf("its mode %q is unknown: the host must give it %s, %s or %s", t.Mode, ModeAllow, ModeAsk, ModeDeny)
	}
	return "the operator does not allow this tool"
}

// modeOf returns the mode of one call, and the rule that it comes from, if any.
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

// Call is one tool call that a model requested.
type Call struct {
	// ID is chosen by the model and unique in the batch.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Arguments is a JSON object; nil means {}. Meta is another, as MCP's _meta.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	// Client tells an adapter who asks, as in supervisor.Request.
	Client json.RawMessage `json:"-"`
	// Problem, if not empty, says why the call cannot be made: its result is
	// then invalid_args. The parser of the call sets it.
	Problem string `json:"-"`
	// TraceParent is the W3C trace context of the call; empty, or more than 128
	// bytes, means none. Config.Observe gets it, and the tool gets it, or the value of
	// Config.Trace for it, as traceparent in Meta.
	TraceParent string `json:"-"`
	// Place, if not nil, waits for a place beside calls of other turns. It is called
	// once the call needs no more approval. ctx ends with the call; an error refuses
	// the call.
	Place func(ctx context.Context) error `json:"-"`
	// Leave, if not nil, releases that place while the call's server waits for an
	// answer without a process; then Place is called again. It must not block. The host
	// releases the place that a call has at its end.
	Leave func() `json:"-"`
	// Before is how often the host saw the same call in earlier turns of the
	// conversation: the repeat guard starts from it.
	Before int `json:"-"`
	// Retry is set if the host repeats the call after a failure without the model's
	// knowledge: the repeat guard does not count it.
	Retry bool `json:"-"`
	// Until is when the caller stops waiting for the result.
	Until Until `json:"-"`
}
