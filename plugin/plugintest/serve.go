package plugintest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// serve is the tool's side of the contract, in this process.
func serve(tool plugin.Registered) toolgrpc.ToolServer { return &server{tool: tool} }

// server runs one call. Nothing can be replied to an Output from outside
// package plugin, so a tool that waits for a reply is told why it gets none.
type server struct {
	toolgrpc.UnimplementedToolServer
	tool plugin.Registered

	mu     sync.Mutex
	cancel context.CancelCauseFunc
}

var errNoReplies = errors.New("plugintest cannot reply to Flush and Ask: try them with toolsdk test")

// Call implements toolhost.plugin.v1.Tool.
func (s *server) Call(request *pluginv1.CallRequest, stream toolgrpc.Tool_CallServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	ctx, release := context.WithTimeoutCause(ctx, time.Duration(request.GetTimeoutNs()), plugin.ErrDeadline)
	defer release()
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	out := plugin.NewOutput(func(event *pluginv1.CallEvent) error {
		if event.GetFlush() != nil || event.GetAsk() != nil {
			cancel(errNoReplies)
		}
		return stream.Send(event)
	})
	return stream.Send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: s.run(ctx, request, out)}})
}

func (s *server) run(ctx context.Context, request *pluginv1.CallRequest, out *plugin.Output) (result *pluginv1.Result) {
	defer func() {
		if p := recover(); p != nil {
			result = failure(pluginv1.ToolError_KIND_PANIC, "panic: "+fmt.Sprint(p))
			result.Error.Stack = printable(string(debug.Stack()))
		}
	}()
	structured, err := s.tool.Run(ctx, request.GetArguments(), out)
	exit, exited := errors.AsType[*plugin.CommandExit](err)
	switch {
	case err == nil:
		return &pluginv1.Result{Structured: structured}
	case exited && exit.Missing:
		return failure(pluginv1.ToolError_KIND_COMMAND_NOT_FOUND, exit.Error())
	case exited && exit.NotExecutable:
		return failure(pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE, exit.Error())
	case exited:
		return &pluginv1.Result{Exit: &pluginv1.CommandExit{Code: int32(exit.Code), Signal: printable(exit.Signal)}}
	case errors.As(err, new(*plugin.InvalidArgumentsError)):
		return failure(pluginv1.ToolError_KIND_INVALID_ARGUMENTS, err.Error())
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		return failure(pluginv1.ToolError_KIND_CANCELLED, err.Error())
	}
	return failure(pluginv1.ToolError_KIND_ERROR, err.Error())
}

func failure(kind pluginv1.ToolError_Kind, message string) *pluginv1.Result {
	return &pluginv1.Result{Error: &pluginv1.ToolError{Kind: kind, Message: printable(message)}}
}

func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Cancel implements toolhost.plugin.v1.Tool.
func (s *server) Cancel(_ context.Context, request *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(fmt.Errorf("%w: %s", plugin.ErrCancelled, request.GetReason()))
	}
	return &pluginv1.CancelResponse{}, nil
}
