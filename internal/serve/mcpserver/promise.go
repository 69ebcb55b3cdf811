package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/plugin/schema"
)

// promise is a tool's output schema: its results have a structured value that
// satisfies it, or clients throw the whole result away.
type promise struct {
	wrapped bool // the tool is a wrapped server's: what it gives is passed on as it is
	made    bool
	object  bool           // the value must be one; others are promised to clients of 2026-07-28 only
	schema  *schema.Schema // nil: nothing else is checked
}

// promiseOf prepares the check. What toolhost takes for no schema is left to the
// client.
func promiseOf(outputSchema any) promise {
	raw, made := outputSchema.(json.RawMessage)
	if !made {
		return promise{}
	}
	parsed, err := schema.Parse(raw)
	if err != nil {
		parsed = nil
	}
	return promise{made: true, object: isObject(raw), schema: parsed}
}

// maxBreachBytes bounds what a note says of a broken promise.
const maxBreachBytes = 500

// to says whether the promise is made to clients of a version.
func (p promise) to(version string) bool { return p.made && (p.object || version >= multiRound) }

// breach is what is wrong with a structured result, for the model; empty if
// nothing is, or if only the client may find out.
func (p promise) breach(structured json.RawMessage) string {
	if p.object && !isJSONObject(structured) || len(structured) == 0 || len(structured) > maxStructuredBytes {
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
