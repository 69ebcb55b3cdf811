package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

// What a call adds to is there as 0 in the scrape before it: Prometheus sees no
// increase in what comes as 1.
func TestCountersAreThereBeforeTheirFirstEvent(t *testing.T) {
	offered := []string{"quick"}
	told := newTelemetry(t, Config{Tools: func() []string { return offered }})
	samples(t, told)
	offered = append(offered, "slow") // as a reload does
	before := samples(t, told)
	limited := timedOut()
	limited.Result.Status, limited.Result.Reason = api.StatusOverloaded, "queue"
	denied := refused()
	denied.Result.Status, denied.Result.Reason = api.StatusDenied, "user"
	asked := turn.Record{Record: api.Record{Event: api.Event{Kind: api.EventInteractionResponse, Interaction: api.KindApproval, Outcome: api.OutcomeDenied}}}
	told.Observe([]turn.Record{timedOut(), fine(), refused(), limited, denied, asked})
	counted := 0
	for name, value := range samples(t, told) {
		switch {
		case !strings.Contains(name, "_total{") || strings.HasPrefix(name, "process_"):
			continue
		case value > 0:
			counted++
		}
		if was, ok := before[name]; !ok || was > value {
			t.Errorf("%s is %v, and was %v (%v) before the first call", name, value, was, ok)
		}
	}
	if counted < 15 {
		t.Errorf("only %d counters were counted up", counted)
	}
}

// Every counter of the reference is there before anything has happened, but for those
// that the kernel may not tell.
func TestAllCountersBegin(t *testing.T) {
	plainEnvironment(t)
	told := newTelemetry(t, Config{})
	var names []string
	for name := range samples(t, told) {
		names = append(names, name)
	}
	all := strings.Join(names, "\n")
	for _, d := range told.metrics.definitions {
		if d.kind == "counter" && d.name != "toolhost_cgroup_pressure_seconds_total" && !strings.Contains(all, d.name+"{") {
			t.Errorf("%s is not there", d.name)
		}
	}
	for _, name := range []string{"toolhost_audit_lost_total{to=otlp}", "toolhost_audit_lost_total{to=syslog}", "toolhost_otlp_export_errors_total{signal=traces}", "toolhost_sandbox_calls_total{cgroup=v2,tier=native}"} {
		if !strings.Contains(all, name) {
			t.Errorf("%s is not there", name)
		}
	}
}

// However many tools there are, those that nobody calls leave room for those
// that somebody does.
func TestOfferedToolsAreBounded(t *testing.T) {
	told := newTelemetry(t, Config{Known: func(string) bool { return true }, Tools: func() (names []string) {
		for i := range 3 * maxTools {
			names = append(names, fmt.Sprintf("tool%d", i))
		}
		return names
	}})
	samples(t, told)
	if n := len(told.tools.seen); n != maxBegun {
		t.Errorf("%d tools have counters, want %d", n, maxBegun)
	}
	late := fine()
	late.Event.Tool = "late"
	told.Observe([]turn.Record{late})
	if got := samples(t, told); got["toolhost_calls_total{status=ok,tool=late}"] != 1 {
		t.Error("a tool that is called has no counter of its own")
	}
}
