package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/plugin/schema"
)

// outputCheck is for a tool's output schema: its results have a structured value that
// satisfies it, or clients throw the whole result away.
type outputCheck struct {
	wrapped  bool // the tool is a wrapped server's: what it gives is passed on as it is
	declared bool
	object   bool           // the value must be one; others are shown to clients of 2026-07-28 only
	schema   *schema.Schema // nil: nothing else is checked
}

// newOutputCheck prepares the check. What toolhost takes for no schema is left to the
// client.
func newOutputCheck(outputSchema any) outputCheck {
	raw, made := outputSchema.(json.RawMessage)
	if !made {
		return outputCheck{}
	}
	parsed, err := schema.Parse(raw)
	if err != nil {
		parsed = nil
	}
	return outputCheck{declared: true, object: isObject(raw), schema: parsed}
}

// maxBreachBytes bounds what a note says of a breach.
const maxBreachBytes = 500

// to says whether clients of a version see the schema.
func (p outputCheck) to(version string) bool {
	return p.declared && (p.object || version >= multiRound)
}

// breach is what is wrong with a structured result, for the model; empty if
// nothing is, or if only the client may find out.
func (p outputCheck) breach(structured json.RawMessage) string {
	if p.object && !object.Is(structured) || len(structured) == 0 || len(structured) > maxStructuredBytes {
		return "the tool has an output schema, and has given no structured result of at most 1 MiB"
	}
	if p.schema == nil {
		return ""
	}
	var value any
	err := json.Unmarshal(structured, &value)
	if err == nil {
		err = p.schema.Validate(value)
	}
	if err == nil || errors.Is(err, schema.ErrTooDear) {
		return ""
	}
	return cut(fmt.Sprintf("the tool's structured result does not satisfy its output schema: %v", err), maxBreachBytes)
}
