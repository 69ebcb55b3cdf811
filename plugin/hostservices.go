package plugin

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// registerHostServices registers what a go-plugin host calls beside the tool's
// own service. Their packages would cost a tool more time to start than they have
// to say: each message here is empty, or one number.
func registerHostServices(g *grpc.Server, s *server) {
	ending := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(ending)
		s.terminate()
		go g.GracefulStop() // for this has to be answered, too
	})
	shutdown := func() any {
		end()
		return &empty{}
	}
	// HealthCheckResponse is {status = 1}, SERVING, which has the same form.
	healthy := func() any { return &pluginv1.CommandExit{Code: 1} }
	for _, service := range []*grpc.ServiceDesc{
		{ServiceName: "grpc.health.v1.Health", Methods: unary("Check", healthy)},
		{ServiceName: "plugin.GRPCController", Methods: unary("Shutdown", shutdown)},
		// Nothing ever comes of these: a tool's output goes over its own pipes, and
		// no further connections are brokered.
		{ServiceName: "plugin.GRPCBroker", Streams: silent("StartStream", ending)},
		{ServiceName: "plugin.GRPCStdio", Streams: silent("StreamStdio", ending)},
	} {
		service.HandlerType = (*any)(nil)
		g.RegisterService(service, struct{}{})
	}
}

// empty is a message without fields; those that come are not looked at.
type empty = pluginv1.CancelResponse

func unary(name string, answer func() any) []grpc.MethodDesc {
	return []grpc.MethodDesc{{MethodName: name, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(&empty{}); err != nil {
			return nil, err
		}
		return answer(), nil
	}}}
}

func silent(name string, ending <-chan struct{}) []grpc.StreamDesc {
	return []grpc.StreamDesc{{StreamName: name, ServerStreams: true, ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
		select {
		case <-stream.Context().Done():
		case <-ending:
		}
		return nil
	}}}
}
