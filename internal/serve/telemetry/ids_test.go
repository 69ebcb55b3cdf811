package telemetry

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// A call's span is the one that others were told before it began, and that of a worker is
// below it. What a parent keeps out is kept out everywhere.
func TestSpansThatOthersWereTold(t *testing.T) {
	plainEnvironment(t)
	r := receive(t, ProtocolHTTP)
	told := newTelemetry(t, Config{Export: Export{Endpoint: r.url, NoMetrics: true}})
	here, hidden := timedOut(), fine()
	here.Result.Where, here.Trace = &api.Where{Worker: "w1"}, told.Trace(here.TraceParent)
	there := Work{
		Worker: "w1", Parent: here.Trace, Own: told.Trace(here.Trace), Offered: at(5), Told: at(20), Over: at(3540), Taken: at(3541), Result: timedOut().Result,
	}
	there.Result.Tool = "slow"
	hidden.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	if hidden.Trace = told.Trace(hidden.TraceParent); !strings.HasSuffix(hidden.Trace, "-00") || hidden.Trace == hidden.TraceParent {
		t.Errorf("below an unsampled one: %s", hidden.Trace)
	}
	told.Observe([]turn.Record{here, hidden})
	told.Worked(there)
	told.Close()
	by := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		by[s.GetName()+" "+hex.EncodeToString(s.GetParentSpanId())[:min(16, 2*len(s.GetParentSpanId()))]] = s
	}
	own, theirs := strings.Split(here.Trace, "-")[2], strings.Split(there.Own, "-")[2]
	for name, id := range map[string]string{"execute_tool slow b7ad6b7169203331": own, "worker slow " + own: theirs} {
		if s := by[name]; s == nil || hex.EncodeToString(s.GetSpanId()) != id || !bytes.Equal(s.GetTraceId(), []byte("\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c")) {
			t.Errorf("%s is %v, want the id %s", name, s, id)
		}
	}
	for _, name := range []string{"place " + own, "start " + own, "run " + own, "kill " + own, "offer " + theirs, "queue " + theirs, "start " + theirs, "run " + theirs, "kill " + theirs, "result " + theirs} {
		if by[name] == nil {
			t.Errorf("no span %s", name)
		}
	}
	if len(r.spans) != 12 {
		t.Errorf("%d spans: %v", len(r.spans), by)
	}
	if got := attributes(by["worker slow "+own].GetAttributes()); got["toolhost.worker"] != "w1" || got[toolName] != "slow" || got["toolhost.status"] != "timeout" {
		t.Errorf("%v", got)
	}
}

// Without traces a call's context passes as it came.
func TestTraceOfAnother(t *testing.T) {
	plainEnvironment(t)
	told := newTelemetry(t, Config{})
	defer told.Close()
	if got := told.Trace("00-x"); got != "00-x" {
		t.Errorf("%q", got)
	}
	told.Worked(Work{Result: fine().Result})
}
