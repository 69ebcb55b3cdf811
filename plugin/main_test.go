package plugin

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// record is a host that keeps what it is sent.
type record struct {
	mu     sync.Mutex
	events []*pluginv1.CallEvent
}

func (r *record) send(event *pluginv1.CallEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, proto.CloneOf(event))
	return nil
}

func (r *record) all() []*pluginv1.CallEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

func (r *record) texts() (texts []string) {
	for _, event := range r.all() {
		texts = append(texts, event.GetContent().GetText())
	}
	return texts
}

// fakeStream is the server's side of a call without a network.
type fakeStream struct {
	grpc.ServerStream
	record
	ctx context.Context
}

func (s *fakeStream) Context() context.Context { return s.ctx }

func (s *fakeStream) Send(event *pluginv1.CallEvent) error {
	if _, err := proto.Marshal(event); err != nil { // as a network needs it
		return err
	}
	return s.send(event)
}

// call is one Call of a server on a goroutine of its own.
type call struct {
	stream *fakeStream
	hangUp context.CancelFunc
	done   chan struct{} // closed after err is written
	err    error
}

func startCall(t *testing.T, s *server, request *pluginv1.CallRequest) *call {
	ctx, hangUp := context.WithCancel(t.Context())
	c := &call{stream: &fakeStream{ctx: ctx}, hangUp: hangUp, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer hangUp()
		c.err = s.Call(request, c.stream)
	}()
	return c
}

// result waits for the call's end and is its last event.
func (c *call) result(t *testing.T) *pluginv1.Result {
	t.Helper()
	<-c.done
	if c.err != nil {
		t.Fatalf("call: %v", c.err)
	}
	events := c.stream.all()
	for i, event := range events {
		if event.GetSeq() != uint64(i)+1 {
			t.Errorf("event %d has seq %d", i+1, event.GetSeq())
		}
		if last := i == len(events)-1; (event.GetResult() != nil) != last {
			t.Fatalf("event %d of %d is %v", i+1, len(events), event)
		}
	}
	if len(events) == 0 {
		t.Fatal("no result")
	}
	return events[len(events)-1].GetResult()
}

func testServer(tools ...Registered) *server { return newServer(fixed(tools)) }

type noArguments struct{}

// tool makes a tool without arguments and result.
func tool(name string, do func(context.Context, *Output) error) Registered {
	return NewTool(Tool{Name: name}, func(ctx context.Context, _ noArguments, out *Output) (None, error) {
		return None{}, do(ctx, out)
	})
}

// waiter ends with its context and hands its cause to ended.
func waiter(ended chan<- error) Registered {
	return tool("wait", func(ctx context.Context, _ *Output) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
}
