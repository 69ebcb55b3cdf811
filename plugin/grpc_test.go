package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// dialTools serves tools over gRPC in memory, as Serve does over a socket.
func dialTools(t *testing.T, tools ...Registered) toolgrpc.ToolClient {
	t.Helper()
	listener, served := bufconn.Listen(1<<20), make(chan error, 1)
	g := newRPC(testServer(tools...))
	go func() { served <- g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:tools", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return toolgrpc.NewToolClient(conn)
}

func receive(t *testing.T, stream grpc.ServerStreamingClient[pluginv1.CallEvent]) *pluginv1.CallEvent {
	t.Helper()
	event, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func TestACallOverGRPC(t *testing.T) {
	client := dialTools(t, tool("x", func(ctx context.Context, out *Output) error {
		if err := out.Text("no UTF-8: \xff"); err != nil {
			return err
		}
		if err := out.Flush(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	stream, err := client.Call(t.Context(), &pluginv1.CallRequest{CallId: "1", Tool: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if text := receive(t, stream).GetContent().GetText(); text != "no UTF-8: \uFFFD" {
		t.Errorf("text %q", text)
	}
	flush := receive(t, stream)
	if flush.GetFlush() == nil {
		t.Fatalf("event %v", flush)
	}
	if _, err := client.Acknowledge(t.Context(), &pluginv1.AcknowledgeRequest{CallId: "1", Seq: flush.GetSeq()}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Cancel(t.Context(), &pluginv1.CancelRequest{CallId: "1"}); err != nil {
		t.Fatal(err)
	}
	if e := receive(t, stream).GetResult().GetError(); e.GetKind() != pluginv1.ToolError_KIND_CANCELLED {
		t.Errorf("error %v", e)
	}
	if event, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the result: %v, %v", event, err)
	}
}

func TestAnUnknownToolOverGRPC(t *testing.T) {
	client := dialTools(t, NewTool(Tool{Name: "search"}, search))
	stream, err := client.Call(t.Context(), &pluginv1.CallRequest{CallId: "1", Tool: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if event, err := stream.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, %v", event, err)
	}
}
