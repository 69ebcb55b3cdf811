package telemetry

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // exporters may compress
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// receiver is the collector's end of OTLP, by the services of its protocol.
type receiver struct {
	collectortrace.UnimplementedTraceServiceServer
	url string

	mu       sync.Mutex
	spans    []*tracepb.Span
	metrics  map[string]*metricspb.Metric
	logs     []*logspb.LogRecord
	resource *resourcepb.Resource
	keys     []string // the headers x-key of all requests

	warning  string // what answers say beside that all was taken, but for
	rejected int64  // so many
}

func (r *receiver) tracesAnswer() *collectortrace.ExportTraceServiceResponse {
	return &collectortrace.ExportTraceServiceResponse{PartialSuccess: &collectortrace.ExportTracePartialSuccess{ErrorMessage: r.warning, RejectedSpans: r.rejected}}
}

func (r *receiver) metricsAnswer() *collectormetrics.ExportMetricsServiceResponse {
	return &collectormetrics.ExportMetricsServiceResponse{PartialSuccess: &collectormetrics.ExportMetricsPartialSuccess{ErrorMessage: r.warning, RejectedDataPoints: r.rejected}}
}

func (r *receiver) logsAnswer() *collectorlogs.ExportLogsServiceResponse {
	return &collectorlogs.ExportLogsServiceResponse{PartialSuccess: &collectorlogs.ExportLogsPartialSuccess{ErrorMessage: r.warning, RejectedLogRecords: r.rejected}}
}

// metricsService has the other method Export.
type metricsService struct {
	collectormetrics.UnimplementedMetricsServiceServer
	r *receiver
}

// Export implements the metrics service.
func (s metricsService) Export(ctx context.Context, in *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	s.r.takeKey(ctx)
	s.r.takeMetrics(in)
	return s.r.metricsAnswer(), nil
}

// logsService has one more method Export.
type logsService struct {
	collectorlogs.UnimplementedLogsServiceServer
	r *receiver
}

// Export implements the logs service.
func (s logsService) Export(ctx context.Context, in *collectorlogs.ExportLogsServiceRequest) (*collectorlogs.ExportLogsServiceResponse, error) {
	s.r.takeKey(ctx)
	s.r.takeLogs(in)
	return s.r.logsAnswer(), nil
}

func (r *receiver) takeLogs(in *collectorlogs.ExportLogsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range in.GetResourceLogs() {
		r.resource = of.GetResource()
		for _, scope := range of.GetScopeLogs() {
			r.logs = append(r.logs, scope.GetLogRecords()...)
		}
	}
}

// Export implements the trace service.
func (r *receiver) Export(ctx context.Context, in *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	r.takeKey(ctx)
	r.takeSpans(in)
	return r.tracesAnswer(), nil
}

func (r *receiver) takeKey(ctx context.Context) {
	given, _ := metadata.FromIncomingContext(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, given.Get("x-key")...)
}

func (r *receiver) takeSpans(in *collectortrace.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		r.resource = of.GetResource()
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

func (r *receiver) takeMetrics(in *collectormetrics.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range in.GetResourceMetrics() {
		r.resource = of.GetResource()
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				r.metrics[m.GetName()] = m
			}
		}
	}
}

// ServeHTTP implements OTLP/HTTP.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	var answer proto.Message
	traces, metrics, logs := &collectortrace.ExportTraceServiceRequest{}, &collectormetrics.ExportMetricsServiceRequest{}, &collectorlogs.ExportLogsServiceRequest{}
	switch {
	case err != nil || q.Header.Get("Content-Type") != "application/x-protobuf":
		http.Error(w, "no protobuf", http.StatusBadRequest)
		return
	case q.URL.Path == "/v1/traces" && proto.Unmarshal(raw, traces) == nil:
		r.takeSpans(traces)
		answer = r.tracesAnswer()
	case q.URL.Path == "/v1/metrics" && proto.Unmarshal(raw, metrics) == nil:
		r.takeMetrics(metrics)
		answer = r.metricsAnswer()
	case q.URL.Path == "/v1/logs" && proto.Unmarshal(raw, logs) == nil:
		r.takeLogs(logs)
		answer = r.logsAnswer()
	default:
		http.NotFound(w, q)
		return
	}
	r.mu.Lock()
	r.keys = append(r.keys, q.Header.Values("x-key")...)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
	raw, _ = proto.Marshal(answer)
	_, _ = w.Write(raw)
}

// receive starts a collector on loopback.
func receive(t *testing.T, protocol string) *receiver {
	t.Helper()
	r := &receiver{metrics: map[string]*metricspb.Metric{}}
	if protocol == ProtocolHTTP {
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		r.url = server.URL
		return r
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, r)
	collectormetrics.RegisterMetricsServiceServer(server, metricsService{r: r})
	collectorlogs.RegisterLogsServiceServer(server, logsService{r: r})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	r.url = "http://" + l.Addr().String()
	return r
}

// attributes are those of a span or resource, as text.
func attributes(list []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		default:
			raw, _ := proto.Marshal(a.GetValue())
			all[a.GetKey()] = string(raw)
		}
	}
	return all
}
