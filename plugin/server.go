package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/internal/plugin/rpc"
	"github.com/toolhost/toolhost/plugin/internal/inprocess"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Causes of the end of a call's context; see context.Cause.
var (
	// ErrDeadline means that the call's timeout has expired; the grace period runs.
	ErrDeadline = errors.New("the call's timeout is over")
	// ErrCancelled means that the host cancelled the call.
	ErrCancelled = errors.New("the call was cancelled")
	// ErrTerminated means that the process got SIGTERM, and the host did not say why.
	ErrTerminated = errors.New("the process was told to end (SIGTERM)")
)

// server runs a binary's tools for a host.
type server struct {
	provider Provider

	mu         sync.Mutex
	calls      map[string]*running
	terminated bool
}

type running struct {
	cancel context.CancelCauseFunc
	out    *Output
}

func newServer(p Provider) *server {
	return &server{provider: p, calls: map[string]*running{}}
}

func init() {
	inprocess.Serve = func(tool any) inprocess.Server { return newServer(fixed{tool.(Registered)}) }
}

// Describe implements toolhost.plugin.v1.Tool. A host that starts a process before its
// call asks for it, too: what the messages of a call need is made by then.
func (s *server) Describe(ctx context.Context, _ *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	_ = proto.Unmarshal(nil, new(pluginv1.CallRequest))
	proto.Size(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{}}})
	listing, err := s.provider.Tools(ctx)
	if err != nil {
		return &pluginv1.DescribeResponse{Error: toolError(ctx, err)}, nil
	}
	response := &pluginv1.DescribeResponse{Version: printable(listing.Version)}
	for _, tool := range listing.Tools {
		response.Tools = append(response.Tools, tool.Describe())
	}
	for _, warning := range listing.Warnings {
		response.Warnings = append(response.Warnings, printable(warning))
	}
	response.Server = listing.Server
	return response, nil
}

// Call implements toolhost.plugin.v1.Tool.
func (s *server) Call(request *pluginv1.CallRequest, stream inprocess.Events) error {
	tool, err := s.find(request)
	if err != nil {
		return err
	}
	out := NewOutput(stream.Send)
	out.served = true
	ctx, end, err := s.begin(stream.Context(), request, out)
	if err != nil {
		return err
	}
	defer end()
	result := &pluginv1.Result{Error: &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: goexit}}
	defer func() { out.close(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: result}}) }()
	result = runTool(ctx, tool, request.GetArguments(), out)
	return nil
}

// goexit is the error of a function that leaves its goroutine without a result, as a test's
// FailNow does.
const goexit = "the tool's function has ended its goroutine (runtime.Goexit) instead of returning: return an error"

// find is what a call runs: a tool, or a request of the provider's protocol.
func (s *server) find(request *pluginv1.CallRequest) (Registered, error) {
	method := request.GetMethod()
	if method == "" {
		tool, ok := s.provider.Find(request.GetTool())
		if !ok {
			return Registered{}, rpc.Errorf(codes.NotFound, "no tool %q in this binary", request.GetTool())
		}
		return tool, nil
	}
	requester, ok := s.provider.(Requester)
	if !ok {
		return Registered{}, rpc.Errorf(codes.NotFound, "this binary takes no requests such as %q", method)
	}
	return Registered{run: func(ctx context.Context, params []byte, out *Output) ([]byte, error) {
		return requester.Request(ctx, method, params, out)
	}}, nil
}

// Watch implements toolhost.plugin.v1.Tool.
func (s *server) Watch(ctx context.Context, send func(*pluginv1.Notice) error) error {
	watcher, ok := s.provider.(Watcher)
	if !ok {
		return rpc.Errorf(codes.Unimplemented, "this binary announces nothing")
	}
	return watcher.Watch(ctx, func(method string, params json.RawMessage) error {
		return send(&pluginv1.Notice{Method: method, Params: params})
	})
}

// begin registers the call under a context that ends at its deadline, on
// cancel, on SIGTERM and when the host is gone.
func (s *server) begin(parent context.Context, request *pluginv1.CallRequest, out *Output) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(withPlace(parent, request))
	release := func() {}
	if left := request.GetTimeoutNs(); left > 0 {
		clock := newCallContext(ctx, time.Duration(left))
		ctx, release, out.clock = clock, clock.release, clock
	}
	id := request.GetCallId()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[id]; taken {
		cancel(nil)
		release()
		return nil, nil, rpc.Errorf(codes.AlreadyExists, "call %q is already running", id)
	}
	s.calls[id] = &running{cancel: cancel, out: out}
	if s.terminated {
		cancel(ErrTerminated)
	}
	end := func() {
		s.mu.Lock()
		delete(s.calls, id)
		s.mu.Unlock()
		release()
		cancel(nil)
	}
	return ctx, end, nil
}

// runTool calls the tool's function and makes its outcome a Result, a panic
// included.
func runTool(ctx context.Context, tool Registered, arguments []byte, out *Output) (result *pluginv1.Result) {
	defer func() {
		if p := recover(); p != nil {
			result = &pluginv1.Result{Error: &pluginv1.ToolError{
				Kind:    pluginv1.ToolError_KIND_PANIC,
				Message: "panic: " + bounded(fmt.Sprint(p)), Stack: bounded(string(debug.Stack())),
			}}
		}
	}()
	structured, err := tool.Run(ctx, arguments, out)
	if exit, ok := errors.AsType[*CommandExit](err); ok {
		return exit.result()
	}
	if err != nil {
		return &pluginv1.Result{Error: toolError(ctx, err), Exit: exitBehind(err), Meta: out.metaOf(), Content: out.lastOf()}
	}
	return &pluginv1.Result{Structured: structured, Meta: out.metaOf(), Content: out.lastOf()}
}

// exitBehind is how the program behind an adapter has ended, or nil.
func exitBehind(err error) *pluginv1.CommandExit {
	if failure, ok := errors.AsType[*Failure](err); ok && failure.Exit != nil {
		return failure.Exit.wire()
	}
	return nil
}

func toolError(ctx context.Context, err error) *pluginv1.ToolError {
	e := &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: bounded(cmp.Or(err.Error(), fmt.Sprintf("an error without a text (%T)", err)))}
	failure, failed := errors.AsType[*Failure](err)
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		e.Rpc = rpc.Raw
	}
	switch {
	case failed:
		e.Kind = failure.kind()
	case errors.As(err, new(*InvalidArgumentsError)):
		e.Kind = pluginv1.ToolError_KIND_INVALID_ARGUMENTS
	case ctx.Err() != nil && endedBy(ctx, err):
		e.Kind = pluginv1.ToolError_KIND_CANCELLED
	}
	return e
}

// bounded keeps what an error says well under what fits one message.
func bounded(s string) string {
	s = printable(s)
	if kept := cut(s, maxChunkBytes); kept != s {
		return kept + "..."
	}
	return s
}

// endedBy: the tool gave its context's end as the reason for its own.
func endedBy(ctx context.Context, err error) bool {
	for _, reason := range []error{context.Cause(ctx), ctx.Err(), ErrCancelled, ErrDeadline, ErrTerminated} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// Cancel implements toolhost.plugin.v1.Tool. A call that is over is not an error.
func (s *server) Cancel(_ context.Context, request *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error) {
	if call := s.call(request.GetCallId()); call != nil {
		call.cancel(cancelCause(request.GetReason()))
	}
	return &pluginv1.CancelResponse{}, nil
}

// cancelCause is what a host gives as its reason.
func cancelCause(reason string) error {
	if reason == reasonDeadline {
		return ErrDeadline
	}
	return fmt.Errorf("%w: %s", ErrCancelled, reason)
}

const (
	// reasonDeadline is a host's reason when the timeout is over.
	reasonDeadline = "deadline"
	// cancelFollows is how long after SIGTERM a host's Cancel, which says why, may
	// still come: they are sent together.
	cancelFollows = 50 * time.Millisecond
)

// Answer implements toolhost.plugin.v1.Tool.
func (s *server) Answer(_ context.Context, request *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	if call := s.call(request.GetCallId()); call != nil {
		call.out.answer(request)
	}
	return &pluginv1.AnswerResponse{}, nil
}

// Acknowledge implements toolhost.plugin.v1.Tool.
func (s *server) Acknowledge(_ context.Context, request *pluginv1.AcknowledgeRequest) (*pluginv1.AcknowledgeResponse, error) {
	if call := s.call(request.GetCallId()); call != nil {
		call.out.acks.store(request.GetSeq())
	}
	return &pluginv1.AcknowledgeResponse{}, nil
}

func (s *server) call(id string) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// terminate cancels what runs and what is still to come.
func (s *server) terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terminated = true
	for _, call := range s.calls {
		time.AfterFunc(cancelFollows, func() { call.cancel(ErrTerminated) })
	}
}
