package main

import (
	"context"
	"encoding/json"
	"os"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// line is one of the output that is not of the log.
type line struct {
	Resource map[string]any `json:"resource"`
	Scope    string         `json:"scope"`
	Span     *span          `json:"span,omitempty"`
	Metric   *metric        `json:"metric,omitempty"`
	Log      *record        `json:"log,omitempty"`
}

// record is of a log.
type record struct {
	Event      string         `json:"event"`
	Time       int64          `json:"time"` // in nanoseconds since 1970
	Severity   string         `json:"severity"`
	Body       string         `json:"body"`
	Attributes map[string]any `json:"attributes"`
}

// span has its ids in hex, and its times in nanoseconds since 1970.
type span struct {
	Name       string         `json:"name"`
	TraceID    string         `json:"traceId"`
	SpanID     string         `json:"spanId"`
	ParentID   string         `json:"parentId"`
	Kind       string         `json:"kind"`
	Start      int64          `json:"start"`
	End        int64          `json:"end"`
	Status     string         `json:"status"` // Unset, Ok or Error
	Message    string         `json:"message"`
	Attributes map[string]any `json:"attributes"`
}

// metric has its type as pmetric names it: Sum, Gauge, Histogram, Summary.
type metric struct {
	Name        string  `json:"name"`
	Unit        string  `json:"unit"`
	Type        string  `json:"type"`
	Monotonic   bool    `json:"monotonic"`
	Temporality string  `json:"temporality"` // Cumulative or Delta; or empty
	Points      []point `json:"points"`
}

// point has the value of a sum or gauge, or the count and sum of all else.
type point struct {
	Attributes map[string]any `json:"attributes"`
	Value      float64        `json:"value"`
	Count      uint64         `json:"count"`
	Sum        float64        `json:"sum"`
}

// write is one write of a file, so that lines of several goroutines stay whole.
func write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(raw, '\n'))
	return err
}

func writeSpans(_ context.Context, traces ptrace.Traces) error {
	for _, of := range traces.ResourceSpans().All() {
		for _, scope := range of.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				if err := write(line{Resource: of.Resource().Attributes().AsRaw(), Scope: scope.Scope().Name(), Span: newSpan(s)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeLogs(_ context.Context, logs plog.Logs) error {
	for _, of := range logs.ResourceLogs().All() {
		for _, scope := range of.ScopeLogs().All() {
			for _, r := range scope.LogRecords().All() {
				one := &record{Event: r.EventName(), Time: int64(r.Timestamp()), Severity: r.SeverityNumber().String(), Body: r.Body().AsString(), Attributes: r.Attributes().AsRaw()}
				if err := write(line{Resource: of.Resource().Attributes().AsRaw(), Scope: scope.Scope().Name(), Log: one}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func newSpan(s ptrace.Span) *span {
	return &span{
		Name: s.Name(), TraceID: s.TraceID().String(), SpanID: s.SpanID().String(), ParentID: s.ParentSpanID().String(), Kind: s.Kind().String(),
		Start: int64(s.StartTimestamp()), End: int64(s.EndTimestamp()),
		Status: s.Status().Code().String(), Message: s.Status().Message(), Attributes: s.Attributes().AsRaw(),
	}
}

func writeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	for _, of := range metrics.ResourceMetrics().All() {
		for _, scope := range of.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				if err := write(line{Resource: of.Resource().Attributes().AsRaw(), Scope: scope.Scope().Name(), Metric: newMetric(m)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func newMetric(m pmetric.Metric) *metric {
	out := &metric{Name: m.Name(), Unit: m.Unit(), Type: m.Type().String()}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		out.Monotonic, out.Temporality = m.Sum().IsMonotonic(), m.Sum().AggregationTemporality().String()
		out.Points = numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeGauge:
		out.Points = numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeHistogram:
		out.Temporality = m.Histogram().AggregationTemporality().String()
		for _, p := range m.Histogram().DataPoints().All() {
			out.Points = append(out.Points, distribution(p.Attributes(), p.Count(), p.Sum()))
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			out.Points = append(out.Points, distribution(p.Attributes(), p.Count(), p.Sum()))
		}
	}
	return out
}

func numbers(list pmetric.NumberDataPointSlice) (points []point) {
	for _, p := range list.All() {
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		points = append(points, point{Attributes: p.Attributes().AsRaw(), Value: value})
	}
	return points
}

func distribution(of pcommon.Map, count uint64, sum float64) point {
	return point{Attributes: of.AsRaw(), Count: count, Sum: sum}
}
