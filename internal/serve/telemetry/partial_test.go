package telemetry

import (
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/serve/audit"
	"github.com/toolhost/toolhost/turn"
)

// What a collector has taken is not sent again, whatever it says with that, and what it has
// rejected of it is counted.
func TestAuditThatIsTakenInPart(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		for name, test := range map[string]struct {
			rejected int64
			lost     int
		}{"a warning": {0, 0}, "one rejected": {1, 1}, "more than were sent": {99, 1}, "fewer than none": {-1, 0}} {
			t.Run(protocol+", "+name, func(t *testing.T) {
				plainEnvironment(t)
				r := receive(t, protocol)
				r.warning, r.rejected = "x", test.rejected
				l, err := NewAuditLogs(Export{Endpoint: r.url, Protocol: protocol, Audit: true}, "", hclog.NewNullLogger())
				if err != nil {
					t.Fatal(err)
				}
				if n, err := l.Send(t.Context(), []journal.Audit{{Seq: 1, Action: "x"}, {Seq: 2, Action: "x"}}); n != 2 {
					t.Errorf("%d are sent, %v", n, err)
				}
				r.logs = nil
				lost := 0
				o := audit.NewOutbox("otlp", l, hclog.NewNullLogger(), func(n int) { lost += n })
				o.Put(journal.Audit{Seq: 3, Action: "x"})
				o.Close()
				if len(r.logs) != 1 || lost != test.lost {
					t.Errorf("%d have come, %d are lost", len(r.logs), lost)
				}
			})
		}
	}
}

// Telemetry that a collector takes with a warning has not failed; what it rejects has.
func TestTelemetryThatIsTakenInPart(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		for rejected, failures := range map[int64]float64{0: 0, 1: 1} {
			plainEnvironment(t)
			r := receive(t, protocol)
			r.warning, r.rejected = "x", rejected
			told := newTelemetry(t, Config{Export: Export{Endpoint: r.url, Protocol: protocol}})
			told.Observe([]turn.Record{fine()})
			told.Close()
			if len(r.spans) == 0 || len(r.metrics) == 0 {
				t.Errorf("%s: %d spans, %d metrics", protocol, len(r.spans), len(r.metrics))
			}
			for _, signal := range []string{"traces", "metrics"} {
				if got := samples(t, told)["toolhost_otlp_export_errors_total{signal="+signal+"}"]; got != failures {
					t.Errorf("%s: %d %s rejected: %v failures", protocol, rejected, signal, got)
				}
			}
		}
	}
}
