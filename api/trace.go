package api

import (
	"encoding/json"
	"strings"
)

// TraceParentVariable is where a command finds the W3C trace context that its own spans
// belong below; a plugin and an MCP server find it as traceparent in their call's metadata.
const TraceParentVariable = "TRACEPARENT"

const (
	traceParentKey = "traceparent"
	// Version 00 has 55 characters; later ones may have more.
	minTraceBytes, maxTraceBytes = 55, 128
)

// TraceParent is the W3C trace context in a call's metadata; "" without a well-formed one.
func TraceParent(meta json.RawMessage) string {
	var in struct {
		TraceParent string `json:"traceparent"`
	}
	if len(meta) == 0 || json.Unmarshal(meta, &in) != nil || !isTraceParent(in.TraceParent) {
		return ""
	}
	return in.TraceParent
}

// WithTraceParent is the metadata with this trace context. A malformed one is left out, and
// metadata that is not an object stays as it was.
func WithTraceParent(meta json.RawMessage, trace string) json.RawMessage {
	if !isTraceParent(trace) || TraceParent(meta) == trace {
		return meta
	}
	fields := map[string]json.RawMessage{}
	if len(meta) > 0 && json.Unmarshal(meta, &fields) != nil || fields == nil {
		return meta
	}
	fields[traceParentKey] = json.RawMessage(`"` + trace + `"`)
	out, err := json.Marshal(fields)
	if err != nil {
		return meta
	}
	return out
}

func isTraceParent(trace string) bool {
	return len(trace) >= minTraceBytes && len(trace) <= maxTraceBytes && strings.Trim(trace, "0123456789abcdef-") == ""
}
