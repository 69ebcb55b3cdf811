package telemetry

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Audit records are logs of OTLP, with each field and the hash, by either protocol.
func TestAuditOverOTLP(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			plainEnvironment(t)
			r := receive(t, protocol)
			l, err := NewAuditLogs(Export{Endpoint: r.url, Protocol: protocol, Audit: true, Headers: map[string]string{"X-Key": "k"}}, "v9", hclog.NewNullLogger())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			for round := range 2 {
				list := []journal.Audit{
					{Seq: 1, Time: at, Who: "uid 0", Action: "token.create", What: "ci", Hash: "ab"},
					{Seq: 2, Time: at, Who: "token ci", Action: journal.ActionRefused, What: "GET /\xff from 127.0.0.1", Outcome: "this needs the role metrics", Hash: "cd"},
				}
				if n, err := l.Send(wait.Context(t), list); n != 2 || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
				if len(r.logs) != 2*(round+1) {
					t.Fatalf("round %d: got %d", round, len(r.logs))
				}
			}
			one, two := r.logs[0], r.logs[1]
			if of := attributes(r.resource.GetAttributes()); of["service.name"] != "toolhost" || of["service.version"] != "v9" {
				t.Errorf("resource %v", of)
			}
			if one.GetEventName() != "toolhost.audit.token.create" || one.GetSeverityNumber() != logspb.SeverityNumber_SEVERITY_NUMBER_INFO || int64(one.GetTimeUnixNano()) != at.UnixNano() {
				t.Errorf("%+v", one)
			}
			if got := attributes(one.GetAttributes()); got["toolhost.audit.who"] != "uid 0" || got["toolhost.audit.what"] != "ci" || got["toolhost.audit.hash"] != "ab" {
				t.Errorf("%v", got)
			}
			if two.GetSeverityNumber() != logspb.SeverityNumber_SEVERITY_NUMBER_WARN || two.GetBody().GetStringValue() != "token ci: access.refused: GET /\ufffd from 127.0.0.1: this needs the role metrics" {
				t.Errorf("%+v", two)
			}
			if len(r.keys) != 2 || r.keys[0] != "k" {
				t.Errorf("headers %q", r.keys)
			}
		})
	}
}

// None are sent unless they are asked for; to ask without a collector is a mistake.
func TestAuditIsAskedFor(t *testing.T) {
	plainEnvironment(t)
	if l, err := NewAuditLogs(Export{Endpoint: "http://127.0.0.1:1"}, "", hclog.NewNullLogger()); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := NewAuditLogs(Export{Audit: true}, "", hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "no endpoint") {
		t.Errorf("%v", err)
	}
	t.Setenv("OTEL_LOGS_EXPORTER", "none")
	if l, err := NewAuditLogs(Export{Audit: true}, "", hclog.NewNullLogger()); l != nil || err != nil {
		t.Errorf("switched off: %v, %v", l, err)
	}
}

// A collector that takes connections and says nothing ends with the attempt's context.
func TestAuditToADeafCollector(t *testing.T) {
	for _, protocol := range []string{ProtocolGRPC, ProtocolHTTP} {
		plainEnvironment(t)
		deaf, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		l, err := NewAuditLogs(Export{Endpoint: "http://" + deaf.Addr().String(), Protocol: protocol, Audit: true}, "", hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if n, err := l.Send(ctx, []journal.Audit{{Seq: 1, Action: "x"}}); n != 0 || err == nil {
			t.Errorf("%s: %d, %v", protocol, n, err)
		}
	}
}
