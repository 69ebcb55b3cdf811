package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// asConn is a Client as generated code takes it.
type asConn struct{ *Client }

func (a asConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	stream, err := a.NewStream(ctx, nil, method, opts...)
	if err != nil {
		return err
	}
	defer stream.(*clientStream).Close()
	if err := stream.(*clientStream).Send(args.(proto.Message), true); err != nil && !errors.Is(err, io.EOF) {
		return asStatus(err)
	}
	if err := stream.RecvMsg(reply); err != nil {
		return err
	}
	if err := stream.RecvMsg(reply); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (a asConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := a.Open(ctx, method, 4<<20)
	if err != nil {
		return nil, asStatus(err)
	}
	return &clientStream{Stream: s, ctx: ctx}, nil
}

func asStatus(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	s := &spb.Status{Code: int32(e.Code), Message: e.Message}
	if e.Details != nil {
		if err := proto.Unmarshal(e.Details, s); err != nil {
			return err
		}
	}
	return status.FromProto(s).Err()
}

type clientStream struct {
	*Stream
	ctx context.Context
}

func (c *clientStream) Header() (metadata.MD, error) { return nil, nil }
func (c *clientStream) Trailer() metadata.MD         { return nil }
func (c *clientStream) Context() context.Context     { return c.ctx }
func (c *clientStream) SendMsg(m any) error          { return asStatus(c.Send(m.(proto.Message), false)) }

func (c *clientStream) RecvMsg(m any) error {
	return asStatus(c.Receive(func(wire []byte) error { return proto.Unmarshal(wire, m.(proto.Message)) }))
}

func (c *clientStream) CloseSend() error {
	c.Stream.CloseSend()
	return nil
}

// asServerStream is a server's stream as generated code takes it.
type asServerStream struct{ *Stream }

func (a asServerStream) SetHeader(metadata.MD) error  { return nil }
func (a asServerStream) SendHeader(metadata.MD) error { return nil }
func (a asServerStream) SetTrailer(metadata.MD)       {}
func (a asServerStream) SendMsg(m any) error          { return a.Send(m.(proto.Message), false) }
func (a asServerStream) RecvMsg(m any) error {
	return a.Receive(func(wire []byte) error { return proto.Unmarshal(wire, m.(proto.Message)) })
}

// handlersOf has a service served by a Server.
func handlersOf(desc *grpc.ServiceDesc, service any) map[string]Handler {
	handlers := map[string]Handler{}
	for _, m := range desc.Methods {
		handlers["/"+desc.ServiceName+"/"+m.MethodName] = func(s *Stream) error {
			response, err := m.Handler(service, s.Context(), func(request any) error { return s.ReceiveMessage(request.(proto.Message)) }, nil)
			if err != nil {
				return fromStatus(err)
			}
			return s.Send(response.(proto.Message), true)
		}
	}
	for _, m := range desc.Streams {
		handlers["/"+desc.ServiceName+"/"+m.StreamName] = func(s *Stream) error {
			return fromStatus(m.Handler(service, asServerStream{s}))
		}
	}
	return handlers
}

func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	e := &Error{Code: s.Code(), Message: s.Message()}
	if len(s.Details()) > 0 {
		e.Details, _ = proto.Marshal(s.Proto())
	}
	return e
}

type server interface {
	Serve(net.Listener) error
	Stop()
}

// listen serves on a socket until the test ends.
func listen(t testing.TB, s server) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path
}

func dial(t testing.TB, path string, o Options) *Client {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(nc, o, time.Minute)
	t.Cleanup(c.Close)
	return c
}

func dialGRPC(t testing.TB, path string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestInterop runs the cases of gRPC's own interoperability tests that need no
// metadata, compression or TLS, which tools do without.
func TestInterop(t *testing.T) {
	theirs := func() server {
		s := grpc.NewServer()
		testpb.RegisterTestServiceServer(s, interop.NewTestServer())
		return s
	}
	ours := func() server {
		return NewServer(Options{}, handlersOf(&testpb.TestService_ServiceDesc, interop.NewTestServer()))
	}
	for name, pair := range map[string]struct {
		server func() server
		dial   func(testing.TB, string) grpc.ClientConnInterface
	}{
		"our client, grpc-go's server": {theirs, func(t testing.TB, path string) grpc.ClientConnInterface { return asConn{dial(t, path, Options{})} }},
		"grpc-go's client, our server": {ours, func(t testing.TB, path string) grpc.ClientConnInterface { return dialGRPC(t, path) }},
		"both ours":                    {ours, func(t testing.TB, path string) grpc.ClientConnInterface { return asConn{dial(t, path, Options{})} }},
	} {
		t.Run(name, func(t *testing.T) { interopCases(t, pair.dial(t, listen(t, pair.server()))) })
	}
}

func interopCases(t *testing.T, conn grpc.ClientConnInterface) {
	client := testpb.NewTestServiceClient(conn)
	for name, test := range map[string]func(context.Context, testpb.TestServiceClient, ...grpc.CallOption){
		"empty_unary": interop.DoEmptyUnaryCall, "large_unary": interop.DoLargeUnaryCall,
		"client_streaming": interop.DoClientStreaming, "server_streaming": interop.DoServerStreaming,
		"ping_pong": interop.DoPingPong, "empty_stream": interop.DoEmptyStream,
		"timeout_on_sleeping_server": interop.DoTimeoutOnSleepingServer,
		"cancel_after_begin":         interop.DoCancelAfterBegin, "cancel_after_first_response": interop.DoCancelAfterFirstResponse,
		"status_code_and_message": interop.DoStatusCodeAndMessage, "special_status_message": interop.DoSpecialStatusMessage,
	} {
		if _, theirs := conn.(*grpc.ClientConn); theirs && name == "cancel_after_begin" {
			continue // grpc-go cancels on a goroutine of its own: a server that is quick answers before
		}
		t.Run(name, func(t *testing.T) { test(t.Context(), client) })
	}
	t.Run("unimplemented_method", func(t *testing.T) {
		if err := conn.Invoke(t.Context(), "/grpc.testing.TestService/UnimplementedCall", &testpb.Empty{}, &testpb.Empty{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("%v", err)
		}
	})
	t.Run("unimplemented_service", func(t *testing.T) {
		interop.DoUnimplementedService(t.Context(), testpb.NewUnimplementedServiceClient(conn))
	})
}
