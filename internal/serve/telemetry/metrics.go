package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/toolhost/toolhost/api"
)

// metrics are all there are. A call is counted when it has its result.
type metrics struct {
	registrar

	calls, overran, clamped     *prometheus.CounterVec
	duration, queue, start      *prometheus.HistogramVec
	timeouts, denials           *prometheus.CounterVec
	kills, signals, survivors   *prometheus.CounterVec
	killLatency, sigkillLatency *prometheus.HistogramVec
	ooms, pidsHits, cpu         *prometheus.CounterVec
	output, dropped, truncated  *prometheus.CounterVec
	missed                      *prometheus.CounterVec
	sandboxMetrics
	fleetMetrics
	turns, aborts, interactions *prometheus.CounterVec
	journalErrors, reloads      *prometheus.CounterVec
	rpcTimeouts                 *prometheus.CounterVec
	rpcDuration                 *prometheus.HistogramVec
	exportErrors, lostCalls     *prometheus.CounterVec
	lostAudit                   *prometheus.CounterVec
}

// sandboxMetrics are of what calls were held by, and of their networks.
type sandboxMetrics struct {
	tiers, degraded, reached, refused, moved *prometheus.CounterVec
}

// fleetMetrics are of calls that were given to workers.
type fleetMetrics struct {
	place *prometheus.HistogramVec
	lost  *prometheus.CounterVec
}

// Buckets of histograms. A tool's run is anything from milliseconds to an hour;
// what toolhost itself takes should be a few milliseconds; a kill is over soon,
// or after the grace, which is at most 30 s.
var (
	runBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
	ownBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	killBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 2.5, 3, 5, 10, 31}
	rpcBuckets  = []float64{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 900_000, 3_600_000}
)

func newMetrics(c Config) *metrics {
	m := &metrics{registrar: registrar{registry: prometheus.NewRegistry()}}
	m.defineCalls()
	m.defineEnds()
	m.defineHost()
	m.registry.MustRegister(
		newProbe(&m.registrar, c),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *metrics) defineCalls() {
	m.calls = m.counter("toolhost_calls_total", "Calls that have their result.", "tool", "status")
	m.duration = m.histogram("toolhost_call_duration_seconds", "From a call's admission to its answer.", runBuckets, "tool")
	m.queue = m.histogram("toolhost_call_queue_seconds", "How long calls waited for a slot.", ownBuckets)
	m.start = m.histogram("toolhost_call_start_seconds", "From a call's admission until its tool ran, of calls whose tool did.", ownBuckets)
	m.overran = m.counter("toolhost_calls_overran_total", "Calls that ran longer than their soft budget.", "tool")
	m.clamped = m.counter("toolhost_timeouts_clamped_total", "Calls whose timeout is not what was asked for, but what bounds leave.", "tool", "profile")
	m.timeouts = m.counter("toolhost_timeouts_total", "Calls that ended as timeout.", "tool", "profile", "reason")
	m.denials = m.counter("toolhost_denials_total", "Calls that were denied.", "reason")
	m.rpcTimeouts = m.counter("sw4rm_rpc_timeout_total", "RPCs to tools that their timeout ended.", rpcLabels...)
	m.rpcDuration = m.histogram("sw4rm_rpc_duration_ms", "How long RPCs to tools took, start-up included, in milliseconds.", rpcBuckets, rpcLabels...)
}

var rpcLabels = []string{"profile", "service", "method"}

func (m *metrics) defineEnds() {
	m.kills = m.counter("toolhost_kills_total", "Kill ladders that were begun.", "cause")
	m.signals = m.counter("toolhost_kill_signals_total", "Kill ladders that sent this signal.", "signal")
	m.survivors = m.counter("toolhost_kill_survivors_total", "Processes that were still there when their call was given up as unkillable.")
	m.killLatency = m.histogram("toolhost_kill_latency_seconds", "From the cause of a kill ladder, the deadline itself or the abort, until no process was left; the grace is part of it.", killBuckets, "cause")
	m.sigkillLatency = m.histogram("toolhost_sigkill_latency_seconds", "From a ladder's SIGKILL until no process was left.", killBuckets)
	m.ooms = m.counter("toolhost_ooms_total", "Calls whose own memory limit could not be kept.", "tool")
	m.pidsHits = m.counter("toolhost_pids_limit_hits_total", "Processes that a call's own limit kept from being made.", "tool")
	m.cpu = m.counter("toolhost_call_cpu_seconds_total", "CPU time that calls have used. What those at one process at once did together counts for each.", "tool", "mode")
	m.output = m.counter("toolhost_output_bytes_total", "Output that tools have made.", "tool", "stream")
	m.dropped = m.counter("toolhost_output_dropped_bytes_total", "Output that results have left out, since it was over the limit.", "tool", "stream")
	m.truncated = m.counter("toolhost_output_truncated_total", "Calls whose output was cut.", "tool")
	m.missed = m.counter("toolhost_events_missed_total", "Events of output and progress that came too fast, or too many, to be shown.")
	m.tiers = m.counter("toolhost_sandbox_calls_total", "Calls that had a sandbox, by what it was.", "tier", "cgroup")
	m.reached = m.counter("toolhost_network_connections_total", "Connections that network grants let through. What those at one process at once did together counts for each.", "tool")
	m.refused = m.counter("toolhost_network_refused_total", "Names and connections that calls with network grants were refused. What those at one process at once did together counts for each.", "tool")
	m.moved = m.counter("toolhost_network_bytes_total", "Bytes that calls with network grants have sent and received. What those at one process at once did together counts for each.", "tool", "direction")
	m.place = m.histogram("toolhost_fleet_place_seconds", "From a call's beginning until a worker was told to start it.", ownBuckets)
	m.lost = m.counter("toolhost_fleet_lost_total", "Calls that were lost: nobody knows how they ended at their worker.", "reason")
	m.degraded = m.counter("toolhost_sandbox_degraded_total", "Calls whose sandbox lacked something that the operator lets it lack.")
}

func (m *metrics) defineHost() {
	m.turns = m.counter("toolhost_turns_total", "Turns that were begun.")
	m.aborts = m.counter("toolhost_turn_aborts_total", "Turns that were aborted.", "reason")
	m.interactions = m.counter("toolhost_interactions_total", "Questions to humans that are over, by what came of them.", "kind", "outcome")
	m.journalErrors = m.counter("toolhost_journal_errors_total", "Writes to the journal that failed.")
	m.reloads = m.counter("toolhost_config_reloads_total", "Attempts to load the configuration anew.", "result")
	m.exportErrors = m.counter("toolhost_otlp_export_errors_total", "Exports over OTLP that failed, and whose data is lost.", "signal")
	m.lostCalls = m.counter("toolhost_otlp_dropped_calls_total", "Calls without a trace, since too many waited for their export.")
	m.lostAudit = m.counter("toolhost_audit_lost_total", "Audit records that were not sent, since too many waited, or that the receiver rejected. The journal has them.", "to")
	m.begin()
}

func reloadResult(ok bool) string {
	if ok {
		return "ok"
	}
	return "error"
}

// event counts what happens in a turn. It keeps no pointer.
func (m *metrics) event(e *api.Event) {
	if e.Missed > 0 {
		m.missed.WithLabelValues().Add(float64(e.Missed))
	}
	switch e.Kind {
	case api.EventTurnStart:
		m.turns.WithLabelValues().Inc()
	case api.EventTurnAbort:
		m.aborts.WithLabelValues(abortReasons.of(string(e.Reason))).Inc()
	case api.EventInteractionResponse:
		m.interactions.WithLabelValues(questions.of(string(e.Interaction)), outcomes.of(e.Outcome)).Inc()
	case api.AuditRequested:
		if e.Outcome == api.OutcomeHeadless { // it has no response
			m.interactions.WithLabelValues(questions.of(string(e.Interaction)), api.OutcomeHeadless).Inc()
		}
	}
}

// call counts a call that has its result. It keeps no pointer.
func (m *metrics) call(c *ended) {
	r := c.result
	m.calls.WithLabelValues(c.tool, statuses.of(string(r.Status))).Inc()
	switch r.Status {
	case api.StatusTimeout:
		m.timeouts.WithLabelValues(c.tool, profiles.of(r.Timing.Profile), timeoutReasons.of(string(r.Reason))).Inc()
	case api.StatusDenied:
		m.denials.WithLabelValues(denyReasons.of(string(r.Reason))).Inc()
	}
	if r.Overran {
		m.overran.WithLabelValues(c.tool).Inc()
	}
	if r.Timing.Clamped {
		m.clamped.WithLabelValues(c.tool, profiles.of(r.Timing.Profile)).Inc()
	}
	m.times(c)
	m.ladder(r)
	m.usage(c)
	m.bytes(c, "stdout", r.Output.Stdout.SeenBytes, r.Output.Stdout.DroppedBytes)
	m.bytes(c, "stderr", r.Output.Stderr.SeenBytes, r.Output.Stderr.DroppedBytes)
	m.bytes(c, "content", r.Output.Content.SeenBytes, r.Output.Content.DroppedBytes)
	if r.Output.Stdout.DroppedBytes+r.Output.Stderr.DroppedBytes+r.Output.Content.DroppedBytes > 0 {
		m.truncated.WithLabelValues(c.tool).Inc()
	}
	if r.Sandbox.Tier != "" {
		m.tiers.WithLabelValues(tiers.of(r.Sandbox.Tier), hierarchies.of(r.Sandbox.Cgroup)).Inc()
	}
	m.network(c)
	m.fleet(r)
	if len(r.Sandbox.Degraded) > 0 {
		m.degraded.WithLabelValues().Inc()
	}
}

func (m *metrics) fleet(r *api.Result) {
	if r.Where != nil {
		m.place.WithLabelValues().Observe(float64(r.Where.PlaceMs) / 1000)
	}
	if r.Status == api.StatusLost {
		m.lost.WithLabelValues(lossReasons.of(string(r.Reason))).Inc()
	}
}

func (m *metrics) times(c *ended) {
	at := c.result.Marks
	observe(m.queue, at.Queued, at.Admitted)
	observe(m.start, at.Admitted, at.Ready)
	observe(m.duration, at.Admitted, at.Done, c.tool)
	if !at.Admitted.IsZero() {
		m.rpc(c.result.Timing.Profile, "Call", at.Done.Sub(at.Admitted), c.result.Status == api.StatusTimeout)
	}
}

// toolService is the one that tools offer (plugin.proto).
const toolService = "toolhost.plugin.v1.Tool"

func (m *metrics) rpc(profile, method string, took time.Duration, timedOut bool) {
	m.rpcDuration.WithLabelValues(profiles.of(profile), toolService, method).Observe(float64(took) / float64(time.Millisecond))
	if timedOut {
		m.rpcTimeouts.WithLabelValues(profiles.of(profile), toolService, method).Inc()
	}
}

// observe does nothing for what has never come.
func observe(h *prometheus.HistogramVec, from, to time.Time, labels ...string) {
	if !from.IsZero() && !to.IsZero() {
		h.WithLabelValues(labels...).Observe(max(to.Sub(from), 0).Seconds())
	}
}

func (m *metrics) ladder(r *api.Result) {
	k := r.Kill
	if k.Survivors > 0 {
		m.survivors.WithLabelValues().Add(float64(k.Survivors))
	}
	if k.Cause == "" {
		return
	}
	cause := killCauses.of(k.Cause)
	m.kills.WithLabelValues(cause).Inc()
	for _, signal := range k.Signals {
		m.signals.WithLabelValues(signals.of(signal)).Inc()
	}
	if k.Survivors > 0 { // which have no such time
		return
	}
	observe(m.killLatency, r.Marks.Stop, r.Marks.Empty, cause)
	if k.Stage == "kill" {
		observe(m.sigkillLatency, r.Marks.Kill, r.Marks.Empty)
	}
}

func (m *metrics) usage(c *ended) {
	u := c.result.Usage
	if u.OOMEvents+u.OOMKills > 0 {
		m.ooms.WithLabelValues(c.tool).Inc()
	}
	if u.PidsLimitHits > 0 {
		m.pidsHits.WithLabelValues(c.tool).Add(float64(u.PidsLimitHits))
	}
	if c.result.Marks.Admitted.IsZero() {
		return
	}
	m.cpu.WithLabelValues(c.tool, "user").Add(float64(max(u.CPUUserMs, 0)) / 1000)
	m.cpu.WithLabelValues(c.tool, "system").Add(float64(max(u.CPUSystemMs, 0)) / 1000)
}

func (m *metrics) bytes(c *ended, stream string, seen, dropped int64) {
	if seen > 0 {
		m.output.WithLabelValues(c.tool, stream).Add(float64(seen))
	}
	if dropped > 0 {
		m.dropped.WithLabelValues(c.tool, stream).Add(float64(dropped))
	}
}

// network counts by tool, and never by name.
func (m *metrics) network(c *ended) {
	if c.result.Network == nil {
		return
	}
	all, refused := c.result.Network.Total()
	m.reached.WithLabelValues(c.tool).Add(float64(max(all.Connections, 0)))
	m.moved.WithLabelValues(c.tool, "sent").Add(float64(max(all.SentBytes, 0)))
	m.moved.WithLabelValues(c.tool, "received").Add(float64(max(all.ReceivedBytes, 0)))
	m.refused.WithLabelValues(c.tool).Add(float64(max(refused, 0)))
}
