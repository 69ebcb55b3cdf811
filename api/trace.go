package api

import (
	"encoding/json"
	"strings"
)

// TraceParentVariable is the environment variable with a command's W3C trace context, the
// parent of its spans. Plugins and MCP servers get it as traceparent in the call's metadata.
const TraceParentVariable = "TRACEPARENT"

const (
	traceParentKey = "traceparent"
	// Version 00 has 55 characters; later ones may have more.
	minTraceBytes, maxTraceBytes = 55, 128
)

// TraceParent returns the W3C trace context in a call's metadata, or "" if it is missing or
// malformed.
func TraceParent(meta json.RawMessage) string {
	var in struct {
		TraceParent string `json:"traceparent"`
	}
	if len(meta) == 0 || json.Unmarshal(meta, &in) != nil || !isTraceParent(in.TraceParent) {
		return ""
	}
	return in.TraceParent
}

// WithTraceParent returns the metadata with the trace context set. It returns meta unchanged
// if trace is malformed or meta is not an object.
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
