package telemetry

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

var update = flag.Bool("update", false, "rewrite generated documents")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secretText stands wherever text of tools, models and humans can be. It must
// turn up nowhere.
const secretText = "s3cret-text"

// began is when all calls of the tests were asked for.
var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// timedOut is a call that was killed at its deadline, full of secret text.
func timedOut() turn.Record {
	r := supervisor.Verdict{Status: api.StatusTimeout, Reason: "deadline", Message: secretText}.Result()
	r.Content = []api.Content{{Type: "text", Text: secretText}}
	r.Output.Stdout = api.StreamOutput{Head: secretText, SeenBytes: 100, KeptBytes: 60, DroppedBytes: 40, SpillPath: secretText}
	r.ToolError = &api.ToolError{Kind: secretText, Message: secretText, Stack: secretText}
	r.Warnings, r.Retry.Hint = []string{secretText}, secretText
	limit := int64(1500)
	r.Timing.Profile, r.Timing.TimeoutMs, r.Timing.ElapsedMs, r.Timing.SourceDetail = "tool_call", &limit, 3540, secretText
	r.Overran, r.Partial, r.Timing.Clamped = true, true, true
	r.Kill = api.Kill{Stage: "kill", Cause: "deadline", Signals: []string{"SIGTERM", "SIGKILL"}, Reaped: 3, LatencyUs: 5000}
	r.Usage = api.Usage{CPUUserMs: 200, CPUSystemMs: 50, MemoryPeakBytes: 1 << 20, OOMEvents: 1, PidsLimitHits: 7}
	r.Sandbox = api.Receipt{Tier: "native", Cgroup: "v2", Degraded: []api.Degradation{{Feature: "landlock", Reason: secretText}}}
	r.Network = &api.Network{
		Mode:    "grants",
		Flows:   []api.NetworkFlow{{Name: secretText, Address: secretText, Port: 443, Connections: 2, SentBytes: 30, ReceivedBytes: 500, Error: secretText}, {Name: secretText + "2", Port: 80, Connections: 1, SentBytes: 12}},
		Refused: []api.NetworkRefusal{{Name: secretText, Count: 4, Why: secretText}},
		// What no list has room for counts.
		MoreFlows: 5, MoreSentBytes: 8, MoreReceivedBytes: 7, MoreRefused: 6,
	}
	r.Marks = api.Marks{Queued: at(10), Admitted: at(30), Ready: at(50), Stop: at(1530), Kill: at(3530), Empty: at(3535), Done: at(3540)}
	return turn.Record{
		Record: api.Record{Event: api.Event{TurnID: "turn1", CallID: "call 1", Tool: "slow", Kind: api.EventFailed, Time: at(3541), Display: secretText, Message: secretText}},
		Result: r, Asked: began, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// fine is a call that went well.
func fine() turn.Record {
	r := supervisor.Verdict{Status: api.StatusOK}.Result()
	r.Timing.Profile = "tool_call"
	r.Marks = api.Marks{Queued: at(0), Admitted: at(1), Ready: at(5), Stop: at(8), Kill: at(8), Empty: at(9), Done: at(9)}
	return turn.Record{Record: api.Record{Event: api.Event{TurnID: "turn1", CallID: "2", Tool: "quick", Kind: api.EventFinished, Time: at(10)}}, Result: r, Asked: began}
}

// refused is a call of a tool that there is not: its name is the model's.
func refused() turn.Record {
	r := supervisor.Verdict{Status: api.StatusInvalidArgs, Reason: "call"}.Result()
	return turn.Record{Record: api.Record{Event: api.Event{TurnID: "turn1", CallID: "3", Tool: secretText, Kind: api.EventFailed, Time: at(10)}}, Result: r, Asked: began}
}

func isKnown(name string) bool { return name == "slow" || name == "quick" }

func newTelemetry(t *testing.T, c Config) *Telemetry {
	t.Helper()
	if c.Known == nil {
		c.Known = isKnown
	}
	if c.Load == nil {
		c.Load = func() Load {
			return Load{Running: 2, Waiting: 1, Stuck: 4, Turns: 3, Pending: 1, Cgroup: "v2", JournalBytes: 4096}
		}
	}
	told, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return told
}
