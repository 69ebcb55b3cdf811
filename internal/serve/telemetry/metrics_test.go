package telemetry

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// samples are the counters and gauges, and the counts and sums of histograms,
// by NAME{label=value,...}.
func samples(t *testing.T, told *Telemetry) map[string]float64 {
	t.Helper()
	families, err := told.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[name+" count"], all[name+" sum"] = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				all[name] = m.GetCounter().GetValue()
			default:
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

func TestCallsAreCounted(t *testing.T) {
	told := newTelemetry(t, Config{Version: "v1"})
	told.Observe([]turn.Record{timedOut(), fine(), refused()})
	told.Described(250*time.Millisecond, nil)
	told.Described(10*time.Second, supervisor.Verdict{Status: api.StatusTimeout}.Result())
	told.JournalFailed()
	told.Reloaded(false)
	const call, describe = "{method=Call,profile=tool_call,service=toolhost.plugin.v1.Tool}", "{method=Describe,profile=message_route,service=toolhost.plugin.v1.Tool}"
	got := samples(t, told)
	for name, want := range map[string]float64{
		"toolhost_calls_total{status=timeout,tool=slow}":                               1,
		"toolhost_calls_total{status=ok,tool=quick}":                                   1,
		"toolhost_calls_total{status=invalid_args,tool=other}":                         1,
		"toolhost_call_duration_seconds{tool=slow} count":                              1,
		"toolhost_call_duration_seconds{tool=slow} sum":                                3.51,
		"toolhost_call_queue_seconds{} count":                                          2,
		"toolhost_call_queue_seconds{} sum":                                            .021,
		"toolhost_call_start_seconds{} sum":                                            .024,
		"toolhost_calls_overran_total{tool=slow}":                                      1,
		"toolhost_timeouts_clamped_total{profile=tool_call,tool=slow}":                 1,
		"toolhost_timeouts_clamped_total{profile=tool_call,tool=quick}":                0,
		"toolhost_timeouts_total{profile=tool_call,reason=deadline,tool=slow}":         1,
		"toolhost_kills_total{cause=deadline}":                                         1,
		"toolhost_kill_signals_total{signal=SIGTERM}":                                  1,
		"toolhost_kill_signals_total{signal=SIGKILL}":                                  1,
		"toolhost_kill_latency_seconds{cause=deadline} sum":                            2.005,
		"toolhost_sigkill_latency_seconds{} sum":                                       .005,
		"toolhost_kills_total{cause=oom}":                                              0,
		"toolhost_kill_survivors_total{}":                                              0,
		"toolhost_ooms_total{tool=slow}":                                               1,
		"toolhost_pids_limit_hits_total{tool=slow}":                                    7,
		"toolhost_call_cpu_seconds_total{mode=user,tool=slow}":                         .2,
		"toolhost_output_bytes_total{stream=stdout,tool=slow}":                         100,
		"toolhost_output_dropped_bytes_total{stream=stdout,tool=slow}":                 40,
		"toolhost_output_truncated_total{tool=slow}":                                   1,
		"toolhost_sandbox_calls_total{cgroup=v2,tier=native}":                          1,
		"toolhost_sandbox_degraded_total{}":                                            1,
		"toolhost_network_connections_total{tool=slow}":                                8,
		"toolhost_network_bytes_total{direction=sent,tool=slow}":                       50,
		"toolhost_network_bytes_total{direction=received,tool=slow}":                   507,
		"toolhost_network_refused_total{tool=slow}":                                    10,
		"toolhost_calls_running{}":                                                     2,
		"toolhost_calls_unkillable{}":                                                  4,
		"toolhost_calls_queued{}":                                                      1,
		"toolhost_turns_active{}":                                                      3,
		"toolhost_interactions_pending{}":                                              1,
		"toolhost_journal_size_bytes{}":                                                4096,
		"toolhost_journal_errors_total{}":                                              1,
		"toolhost_config_reloads_total{result=error}":                                  1,
		"toolhost_cgroup_info{mode=v2}":                                                1,
		"sw4rm_rpc_timeout_total" + call:                                               1,
		"sw4rm_rpc_timeout_total" + describe:                                           1,
		"sw4rm_rpc_duration_ms" + call + " sum":                                        3518,
		"sw4rm_rpc_duration_ms" + describe + " count":                                  2,
		fmt.Sprintf("toolhost_build_info{goversion=%s,version=v1}", runtime.Version()): 1,
	} {
		if value, ok := got[name]; !ok || value < want-1e-9 || value > want+1e-9 {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
	for name := range got {
		if strings.Contains(name, secretText) || strings.Contains(name, "call 1") {
			t.Errorf("a label holds free text: %s", name)
		}
		if strings.HasPrefix(name, "toolhost_call_duration_seconds{tool=other}") {
			t.Errorf("a call that had no slot is measured: %s", name)
		}
	}
}

// A survivor is counted, and its ladder has no latency: it has not ended.
func TestSurvivorsAreCounted(t *testing.T) {
	told := newTelemetry(t, Config{})
	one := timedOut()
	one.Result.Status, one.Result.Kill.Survivors = api.StatusUnkillable, 2
	told.Observe([]turn.Record{one})
	got := samples(t, told)
	if got["toolhost_kill_survivors_total{}"] != 2 || got["toolhost_kills_total{cause=deadline}"] != 1 || got["toolhost_kill_latency_seconds{cause=deadline} count"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestEventsAreCounted(t *testing.T) {
	told := newTelemetry(t, Config{})
	var records []turn.Record
	for _, e := range []api.Event{
		{Kind: api.EventTurnStart, AgentID: secretText, SessionID: secretText},
		{Kind: api.EventTurnAbort, Reason: "user"},
		{Kind: api.EventTurnAbort, Reason: "disconnect"},
		{Kind: api.EventTurnAbort, Reason: secretText},
		{Kind: api.EventInteractionResponse, Interaction: api.KindApproval, Outcome: api.OutcomeAnswered, By: secretText},
		{Kind: api.AuditRequested, Interaction: api.KindConfirm, Outcome: api.OutcomeHeadless},
		{Kind: api.AuditRequested, Interaction: api.KindConfirm}, // whose response is still to come
		{Kind: api.EventOutput, Missed: 5},
	} {
		records = append(records, turn.Record{Record: api.Record{Event: e}})
	}
	told.Observe(records)
	got := samples(t, told)
	for name, want := range map[string]float64{
		"toolhost_turns_total{}": 1, "toolhost_turn_aborts_total{reason=user}": 1, "toolhost_turn_aborts_total{reason=disconnect}": 1, "toolhost_turn_aborts_total{reason=other}": 1,
		"toolhost_interactions_total{kind=approval,outcome=answered}": 1, "toolhost_interactions_total{kind=confirm,outcome=headless}": 1,
		"toolhost_events_missed_total{}": 5,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// However many tools come and go, metrics stay bounded.
func TestToolNamesAreBounded(t *testing.T) {
	told := newTelemetry(t, Config{Known: func(string) bool { return true }})
	for i := range 3 * maxTools {
		one := fine()
		one.Event.Tool = fmt.Sprintf("tool%d", i)
		told.Observe([]turn.Record{one})
	}
	got, n := samples(t, told), 0
	for name := range got {
		if strings.HasPrefix(name, "toolhost_calls_total{status=ok,") {
			n++
		}
	}
	if n != maxTools+1 {
		t.Errorf("%d tools have a name, want %d and the rest as one", n, maxTools)
	}
	if got := got["toolhost_calls_total{status=ok,tool=other}"]; got != 2*maxTools {
		t.Errorf("%v calls of other tools", got)
	}
}

// Names, units and help are as Prometheus has them. The names with sw4rm are
// given from outside.
func TestNamesFollowConventions(t *testing.T) {
	told := newTelemetry(t, Config{})
	told.Observe([]turn.Record{timedOut(), fine()})
	families, err := told.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "toolhost_") })
	if len(families) < 20 {
		t.Errorf("only %d metrics", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Every metric that is told of is one that the documentation's table has.
func TestDefinitionsAreWhole(t *testing.T) {
	told := newTelemetry(t, Config{})
	told.Observe([]turn.Record{timedOut(), fine()})
	families, err := told.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		i := slices.IndexFunc(told.metrics.definitions, func(d definition) bool { return d.name == f.GetName() })
		if i < 0 {
			t.Errorf("%s has no definition", f.GetName())
			continue
		}
		d := told.metrics.definitions[i]
		if strings.ToLower(f.GetType().String()) != d.kind || f.GetHelp() != d.help {
			t.Errorf("%s is a %s (%s), and defined as %+v", f.GetName(), f.GetType(), f.GetHelp(), d)
		}
		for _, label := range f.GetMetric()[0].GetLabel() {
			if !slices.Contains(d.labels, label.GetName()) {
				t.Errorf("%s has the label %s, which is not defined", f.GetName(), label.GetName())
			}
		}
	}
}
