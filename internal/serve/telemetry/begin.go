package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/toolhost/toolhost/budget"
)

// Prometheus sees no increase in a series that comes as 1: what counts events
// has to be there before the first of them, as 0.

// begin does so where the labels are known from the beginning.
func (m *metrics) begin() {
	for _, single := range []*prometheus.CounterVec{m.survivors, m.missed, m.degraded, m.turns, m.journalErrors, m.lostCalls} {
		single.WithLabelValues()
	}
	for _, single := range []*prometheus.HistogramVec{m.queue, m.start, m.sigkillLatency, m.place} {
		single.WithLabelValues()
	}
	for counter, known := range map[*prometheus.CounterVec]words{
		m.kills: killCauses, m.signals: signals, m.denials: denyReasons, m.aborts: abortReasons, m.lost: lossReasons,
		m.reloads: wordsOf(reloadResult(true), reloadResult(false)), m.exportErrors: wordsOf("traces", "metrics"), m.lostAudit: wordsOf("otlp", "syslog"),
	} {
		for word := range known {
			counter.WithLabelValues(word)
		}
	}
	for cause := range killCauses {
		m.killLatency.WithLabelValues(cause)
	}
	for kind := range questions {
		for outcome := range outcomes {
			m.interactions.WithLabelValues(kind, outcome)
		}
	}
	for tier := range tiers {
		for hierarchy := range hierarchies {
			m.tiers.WithLabelValues(tier, hierarchy)
		}
	}
	for method, profile := range map[string]string{"Call": budget.ToolCall, "Describe": budget.MessageRoute} {
		m.rpcTimeouts.WithLabelValues(profile, toolService, method)
	}
	m.beginTool(other)
}

// beginTool does so for a tool.
func (m *metrics) beginTool(tool string) {
	for status := range statuses {
		m.calls.WithLabelValues(tool, status)
	}
	for reason := range timeoutReasons {
		m.timeouts.WithLabelValues(tool, budget.ToolCall, reason)
	}
	m.clamped.WithLabelValues(tool, budget.ToolCall)
	for _, single := range []*prometheus.CounterVec{m.overran, m.ooms, m.pidsHits, m.truncated, m.reached, m.refused} {
		single.WithLabelValues(tool)
	}
	for _, mode := range []string{"user", "system"} {
		m.cpu.WithLabelValues(tool, mode)
	}
	for _, direction := range []string{"sent", "received"} {
		m.moved.WithLabelValues(tool, direction)
	}
	for _, stream := range []string{"stdout", "stderr", "content"} {
		m.output.WithLabelValues(tool, stream)
		m.dropped.WithLabelValues(tool, stream)
	}
}

// maxBegun bounds the tools that have their counters before their first call.
const maxBegun = 256

// gatherer gathers the metrics after it has read the current tools.
type gatherer struct{ t *Telemetry }

// Gather implements prometheus.Gatherer.
func (g gatherer) Gather() ([]*dto.MetricFamily, error) {
	if g.t.offered != nil {
		for _, name := range g.t.offered() {
			g.t.tools.add(name, maxBegun)
		}
	}
	return g.t.metrics.registry.Gather()
}
