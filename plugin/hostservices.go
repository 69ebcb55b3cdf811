package plugin

import (
	"context"
	"maps"
	"sync"

	"github.com/toolhost/toolhost/internal/nowait"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/internal/plugin/rpc"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// newRPC serves a tool's service, and those of its process.
func newRPC(s *server) *rpc.Server {
	var g *rpc.Server
	ending := make(chan struct{})
	handlers := s.handlers()
	maps.Copy(handlers, hostServices(ending, sync.OnceFunc(func() {
		close(ending)
		s.terminate()
		g.Stop() // which lets this be answered, too
	})))
	_, brief := s.provider.(nowait.Brief)
	g = rpc.NewServer(rpc.Options{MaxMessageBytes: maxRequestBytes, Brief: brief}, handlers)
	return g
}

// handlers are those of toolhost.plugin.v1.
func (s *server) handlers() map[string]rpc.Handler {
	const service = handshake.Service
	return map[string]rpc.Handler{
		service + "Describe":    rpc.Unary(s.Describe),
		service + "Cancel":      rpc.Unary(s.Cancel),
		service + "Answer":      rpc.Unary(s.Answer),
		service + "Acknowledge": rpc.Unary(s.Acknowledge),
		service + "Call": streamed(func(request *pluginv1.CallRequest, to *rpc.Stream) error {
			return s.Call(request, callStream{to})
		}),
		service + "Watch": streamed(func(request *pluginv1.WatchRequest, to *rpc.Stream) error {
			return s.Watch(to.Context(), func(notice *pluginv1.Notice) error { return to.Send(notice, false) })
		}),
	}
}

// callStream sends the events of a call.
type callStream struct{ *rpc.Stream }

// Send has the end go along with the result, which is the last event.
func (c callStream) Send(event *pluginv1.CallEvent) error {
	return c.Stream.Send(event, event.GetResult() != nil)
}

// hostServices are what a go-plugin host calls beside the tool's own service. Their
// packages would cost a tool more time to start than they have to say: each message
// here is empty, or one number.
func hostServices(ending <-chan struct{}, end func()) map[string]rpc.Handler {
	// Nothing ever comes of these: a tool's output goes over its own pipes, and no
	// further connections are brokered.
	silent := func(s *rpc.Stream) error {
		select {
		case <-s.Context().Done():
		case <-ending:
		}
		return nil
	}
	return map[string]rpc.Handler{
		"/plugin.GRPCBroker/StartStream": silent,
		"/plugin.GRPCStdio/StreamStdio":  silent,
		"/plugin.GRPCController/Shutdown": rpc.Unary(func(context.Context, *empty) (*empty, error) {
			end()
			return &empty{}, nil
		}),
		// HealthCheckResponse is {status = 1}, SERVING, which has the same form.
		"/grpc.health.v1.Health/Check": rpc.Unary(func(context.Context, *empty) (*pluginv1.CommandExit, error) {
			return &pluginv1.CommandExit{Code: 1}, nil
		}),
	}
}

// empty is a message without fields; those that come are not looked at.
type empty = pluginv1.CancelResponse

// streamed is the handler of a method with one request.
func streamed[T any, Request rpc.Message[T]](serve func(Request, *rpc.Stream) error) rpc.Handler {
	return func(s *rpc.Stream) error {
		request := Request(new(T))
		if err := s.ReceiveMessage(request); err != nil {
			return err
		}
		return serve(request, s)
	}
}
