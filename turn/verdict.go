package turn

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Deciders of a refusal.
const (
	deciderMode   = "modeGate"
	deciderBudget = "turnBudget"
	deciderRepeat = "repeatGuard"
)

// What an abort came before, for cancelled.
const (
	turnAborted    = "Turn aborted by %s."
	callAborted    = "Call aborted by %s before it began. Nothing was changed."
	abortedBetween = "Call aborted by %s between two processes of its server, which had asked for something; none was left."
)

// cancelled is the result of a call that had no process when it was aborted.
func cancelled(c Call, reason api.Reason, aborted string) *api.Result {
	return supervisor.Verdict{
		CallID: c.ID, Tool: c.Tool, Status: api.StatusCancelled, Reason: reason,
		Message: "[CANCELLED] " + fmt.Sprintf(aborted, reason),
	}.Result()
}

func denied(c Call, reason api.Reason, decider, why string) *api.Result {
	return supervisor.Verdict{
		CallID: c.ID, Tool: c.Tool, Status: api.StatusDenied, Reason: reason, Decider: decider,
		Message: fmt.Sprintf("[DENIED] The call of tool %q was not made: %s. Nothing was changed.", c.Tool, why),
	}.Result()
}

func invalid(c Call, reason api.Reason, why string) *api.Result {
	r := supervisor.Verdict{
		CallID: c.ID, Tool: c.Tool, Status: api.StatusInvalidArgs, Reason: reason,
		Message: fmt.Sprintf("[FAILED] The call of tool %q was not made: %s. Nothing was changed. Next: correct the call.", c.Tool, why),
	}.Result()
	r.ToolError = &api.ToolError{Kind: "invalid_arguments", Message: why}
	return r
}

// notMade is the message for a call that did not begin.
func notMade(c Call, why string) string {
	return fmt.Sprintf("[FAILED] The call of tool %q was not made: %s. Nothing was changed.", c.Tool, why)
}

func overloaded(c Call, reason api.Reason, message string) *api.Result {
	return supervisor.Verdict{CallID: c.ID, Tool: c.Tool, Status: api.StatusOverloaded, Reason: reason, Message: message}.Result()
}

func unjournalled(c Call, err error) *api.Result {
	return overloaded(c, api.ReasonJournal, notMade(c, "the journal cannot be written: "+err.Error()))
}

// A third identical call gets a note, a fifth is refused, unless a call of another
// kind that is not read-only has come in between.
const (
	repeatNote   = 3
	repeatRefuse = 5
)

// checkRepeat counts calls of the same tool with the same arguments; true if
// this one is refused for it.
func (b *batch) checkRepeat(e *entry) (refused bool) {
	if e.tool.Repeatable || e.call.Retry {
		return false
	}
	key := e.call.Key()
	b.t.repeats[key]++
	n := b.t.repeats[key] + e.call.Before
	switch {
	case n >= repeatRefuse:
		b.deny(e, api.ReasonRepeat, deciderRepeat, fmt.Sprintf("it is the same call for the %s time; do something else", ordinal(n)))
		return true
	case n >= repeatNote:
		e.notes = append(e.notes, fmt.Sprintf("this is the same call for the %s time; the %s is refused", ordinal(n), ordinal(repeatRefuse)))
	}
	return false
}

// disturb has the repeat guard begin anew for all calls but those like this one,
// which is about to happen and may change what they would find.
func (b *batch) disturb(e *entry) {
	if e.forgotten != nil || e.tool.ReadOnly || e.tool.Request.Tool.ReadOnly {
		return
	}
	e.forgotten = b.t.repeats
	b.t.repeats = map[[32]byte]int{}
	if key := e.call.Key(); e.forgotten[key] > 0 {
		b.t.repeats[key] = e.forgotten[key]
		delete(e.forgotten, key)
	}
}

// settle takes that back for a call that has never begun.
func (b *batch) settle(e *entry, r *api.Result) {
	if !r.OK() && r.Retry.SideEffects == "none" {
		for key, n := range e.forgotten {
			b.t.repeats[key] += n
		}
	}
	e.forgotten = nil
}

// ordinal is 1st, 2nd, 3rd, 4th, 11th, 21st ...
func ordinal(n int) string {
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			return strconv.Itoa(n) + "st"
		case 2:
			return strconv.Itoa(n) + "nd"
		case 3:
			return strconv.Itoa(n) + "rd"
		}
	}
	return strconv.Itoa(n) + "th"
}

// Key returns a hash that is equal for calls of the same tool with equal arguments,
// whatever their formatting and order of keys.
func (c Call) Key() [sha256.Size]byte {
	return sha256.Sum256(append([]byte(c.Tool+"\x00"), canonical(c.Arguments)...))
}

// canonical makes equal arguments equal bytes: without spaces, keys in order.
func canonical(arguments json.RawMessage) []byte {
	var value any
	if len(arguments) == 0 {
		return []byte("{}")
	}
	in := json.NewDecoder(bytes.NewReader(arguments))
	in.UseNumber() // long ids are not to be rounded
	if in.Decode(&value) != nil {
		return arguments
	}
	if value == nil { // null: some clients send it for none
		return []byte("{}")
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return arguments
	}
	return raw
}
