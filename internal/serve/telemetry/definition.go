package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// definition is one metric as the documentation has it.
type definition struct {
	name   string
	kind   string // counter, gauge or histogram
	help   string
	labels []string
}

// registrar makes metrics, and remembers what it has made.
type registrar struct {
	registry    *prometheus.Registry
	definitions []definition
}

func (r *registrar) define(kind, name, help string, labels []string) {
	r.definitions = append(r.definitions, definition{name, kind, help, labels})
}

func (r *registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	r.define("counter", name, help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.registry.MustRegister(c)
	return c
}

func (r *registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	r.define("histogram", name, help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.registry.MustRegister(h)
	return h
}

// measured is a metric whose value is found out when somebody asks.
type measured struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (r *registrar) measured(kind prometheus.ValueType, name, help string, labels ...string) measured {
	words := map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge"}
	r.define(words[kind], name, help, labels)
	return measured{prometheus.NewDesc(name, help, labels, nil), kind}
}

func (m measured) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(m.desc, fmt.Errorf("bug: %w", err))
	}
	to <- metric
}
