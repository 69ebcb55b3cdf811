package telemetry

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// Secret headers and data go to the address that was given, and to none that a collector
// names.
func TestNoRedirectIsFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			plainEnvironment(t)
			var taken atomic.Int64
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
			defer other.Close()
			collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/stolen/"+strings.Repeat("x", 400), status)
			}))
			defer collector.Close()
			var said bytes.Buffer
			export := Export{Endpoint: collector.URL, Audit: true, Headers: map[string]string{"X-Key": "k"}, Interval: time.Hour}
			told := newTelemetry(t, Config{Export: export, Logger: hclog.New(&hclog.LoggerOptions{Output: &said, Mutex: &sync.Mutex{}})})
			told.Observe([]turn.Record{fine()})
			told.Close()
			logs, err := NewAuditLogs(export, "", hclog.NewNullLogger())
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Close()
			_, err = logs.Send(wait.Context(t), []journal.Audit{{Seq: 1}})
			if n := taken.Load(); n != 0 {
				t.Errorf("the other machine got %d requests", n)
			}
			for _, text := range append(strings.Split(strings.TrimSpace(said.String()), "\n"), fmt.Sprint(err)) {
				if !strings.Contains(text, fmt.Sprintf("status %d, ", status)) || !strings.Contains(text, "name the final address as the endpoint") {
					t.Errorf("said: %s", text)
				}
			}
			if n := strings.Count(said.String(), "telemetry cannot be sent"); n != 2 {
				t.Errorf("%d lines for traces and metrics: %s", n, said.String())
			}
		})
	}
}
