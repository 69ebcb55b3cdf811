package plugintest

import (
	"cmp"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/plugin/internal/inprocess"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// What a Host with zero fields does, as hosts do that nobody configured.
const (
	DefaultTimeout = 30 * time.Second
	DefaultGrace   = 2 * time.Second
)

// Host is how a test calls a tool. The zero value works.
type Host struct {
	// Timeout is the call's; the tool's context ends when it is over. Zero is
	// DefaultTimeout.
	Timeout time.Duration
	// Grace is how long the tool may then take to return; after it the test
	// fails, since a real host kills the process. Zero is DefaultGrace.
	Grace time.Duration
	// Answers are given to the tool's questions (Output.Ask), in this order. A
	// question too many is denied as if nobody was there and fails the test, and
	// so does an answer that was not asked for.
	Answers []Answer
}

// Answer is a human's.
type Answer struct {
	// Value is encoded as JSON: true says yes to a question without a schema.
	Value any
	// Denied, if not empty, is why there is no answer: user, timeout, headless.
	Denied string
}

// Call runs a tool to its end on a zero Host. See Host.Call.
func Call(t testing.TB, tool plugin.Registered, arguments any) *Result {
	t.Helper()
	return Host{}.Call(t, tool, arguments)
}

// Start begins a call on a zero Host. See Host.Start.
func Start(t testing.TB, tool plugin.Registered, arguments any) *Running {
	t.Helper()
	return Host{}.Start(t, tool, arguments)
}

// Call runs a tool to its end. Arguments are JSON text (a string, []byte or
// json.RawMessage) or a value to encode; nil is {}. As a host does, it checks
// them against the tool's input schema first: what breaks it makes a Result
// with an error of kind invalid_arguments, and the tool does not run.
func (h Host) Call(t testing.TB, tool plugin.Registered, arguments any) *Result {
	t.Helper()
	return h.Start(t, tool, arguments).Result()
}

// Start begins a call and lets the test do something while it runs. When the
// test ends first, the call is cancelled.
func (h Host) Start(t testing.TB, tool plugin.Registered, arguments any) *Running {
	t.Helper()
	h.Timeout = cmp.Or(h.Timeout, DefaultTimeout)
	h.Grace = cmp.Or(h.Grace, DefaultGrace)
	raw := encode(t, arguments)
	r := &Running{
		t: t, host: h, tool: tool.Describe(), server: inprocess.Serve(tool), answers: h.Answers,
		done: make(chan struct{}), changed: make(chan struct{}), cancelled: make(chan struct{}),
	}
	if problem := r.refusal(raw); problem != "" {
		r.result.Error = &Error{Kind: KindInvalidArguments, Message: problem}
		close(r.done)
		return r
	}
	r.start(&pluginv1.CallRequest{CallId: callID, Tool: tool.Name(), Arguments: raw, TimeoutNs: int64(h.Timeout)})
	return r
}

// encode passes JSON text on unchecked, for a tool to refuse.
func encode(t testing.TB, value any) []byte {
	t.Helper()
	switch v := value.(type) {
	case nil:
		return []byte("{}")
	case string:
		return []byte(v)
	case []byte:
		return v
	case json.RawMessage:
		return v
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("plugintest: cannot encode the arguments: %v", err)
	}
	return raw
}

// callID is that of every call: each has a server of its own.
const callID = "plugintest"
