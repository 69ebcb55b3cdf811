package host

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/proto/v1/toolgrpc"
)

// sender is a tool that sends one blob and, unless it hangs, a result.
type sender struct {
	toolgrpc.UnimplementedToolServer
	blob  int
	hangs bool
}

func (s *sender) Call(_ *pluginv1.CallRequest, stream toolgrpc.Tool_CallServer) error {
	blob := &pluginv1.Blob{Data: make([]byte, s.blob)}
	_ = stream.Send(contentEvent(1, &pluginv1.Content{Content: &pluginv1.Content_Blob{Blob: blob}}))
	if s.hangs {
		<-stream.Context().Done()
		return nil
	}
	return stream.Send(final(2, ""))
}

// connectTo serves a tool on a socket and connects to it as Connect does.
func connectTo(t *testing.T, tool toolgrpc.ToolServer, o Options) *Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	toolgrpc.RegisterToolServer(server, tool)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	raw, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	o.complete()
	conn := &Conn{options: o, socket: "s"}
	conn.speak(raw)
	t.Cleanup(func() {
		conn.client.Close()
		server.Stop()
		<-served
	})
	return conn
}

func TestMemoryOfACall(t *testing.T) {
	received, decoded := &counted{}, &counted{}
	conn := connectTo(t, &sender{blob: 3 << 20}, Options{Received: received, Decoded: decoded})
	held, last := int64(0), time.Now()
	err := conn.Call(t.Context(), &pluginv1.CallRequest{}, func(e *pluginv1.CallEvent, began time.Time) {
		if e.GetContent() != nil {
			held = decoded.now()
		}
		if now := time.Now(); !began.After(last) || !began.Before(now) {
			t.Errorf("an event's decoding began at %s, the one before was handled at %s, and it is %s", began, last, now)
		} else {
			last = now
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if held < 3<<20 || received.most < 3<<20 {
		t.Errorf("%d bytes were held while the message was looked at, %d while it came", held, received.most)
	}
	if decoded.now() != 0 || received.now() != 0 {
		t.Errorf("%d and %d bytes are left", decoded.now(), received.now())
	}
}

func TestNoMemoryForACall(t *testing.T) {
	full := &counted{limit: 8 << 10}
	for name, o := range map[string]Options{
		"to receive": {Received: full},
		"to decode":  {Decoded: full},
	} {
		err := connectTo(t, &sender{blob: 1 << 20}, o).Call(t.Context(), &pluginv1.CallRequest{}, func(*pluginv1.CallEvent, time.Time) {})
		if _, ok := errors.AsType[*MemoryError](err); !ok || !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailEndsACall(t *testing.T) {
	conn := connectTo(t, &sender{hangs: true}, Options{})
	err := conn.Call(t.Context(), &pluginv1.CallRequest{}, func(*pluginv1.CallEvent, time.Time) {
		go conn.Fail(&MemoryError{errFull})
	})
	if !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// An answer that says nothing needs no room for more.
func TestLargeAnswersAreRefused(t *testing.T) {
	conn := connectTo(t, &chatty{}, Options{})
	if err := conn.Cancel(context.Background(), "x", ""); err == nil {
		t.Error("a large answer to Cancel is taken")
	}
}

type chatty struct {
	toolgrpc.UnimplementedToolServer
}

func (*chatty) Cancel(context.Context, *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error) {
	r := &pluginv1.CancelResponse{}
	r.ProtoReflect().SetUnknown(field(15, make([]byte, 1<<20)))
	return r, nil
}
