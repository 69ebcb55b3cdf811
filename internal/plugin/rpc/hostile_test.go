package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// peer is the other side of a connection, which does what no library does.
type peer struct {
	*http2.Framer
	nc net.Conn
}

// headers is a block of fields, given as name, value, ...
func (p *peer) headers(id uint32, end bool, fields ...string) error {
	return p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(fields...), EndHeaders: true, EndStream: end})
}

func block(fields ...string) []byte {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			panic(err)
		}
	}
	return []byte(b.String())
}

func (p *peer) respond(id uint32) error {
	return p.headers(id, false, ":status", "200", "content-type", "application/grpc")
}

func message(body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
}

// discard reads, and so lets the other side go on.
func (p *peer) discard() { go func() { _, _ = io.Copy(io.Discard, p.nc) }() }

// met is a client, and its server, which has said nothing yet.
func met(t *testing.T, o Options) (*Client, *peer) {
	t.Helper()
	ours, theirs := sockets(t)
	client := NewClient(ours, o, time.Minute)
	t.Cleanup(client.Close)
	return client, &peer{http2.NewFramer(theirs, theirs), theirs}
}

func sockets(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// held is a Memory that knows what it holds, and held at most.
type held struct {
	mu        sync.Mutex
	now, most int64
}

func (h *held) Take(_ context.Context, n int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
	return nil
}

func (h *held) Give(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now -= n
}

func TestHostileServer(t *testing.T) {
	const limit = 1 << 20
	for _, test := range []struct {
		name string
		do   func(p *peer) error
		code codes.Code
		text string
	}{
		{"no settings", func(p *peer) error { return p.respond(1) }, codes.Unavailable, "PROTOCOL_ERROR"},
		{"an acknowledgement first", func(p *peer) error { return p.WriteSettingsAck() }, codes.Unavailable, "PROTOCOL_ERROR"},
		{"not HTTP/2", func(p *peer) error { _, err := p.nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); return err }, codes.Unavailable, ""},
		{"the end", func(p *peer) error { return p.nc.Close() }, codes.Unavailable, "has ended"},
		{"wrong setting", settled(func(p *peer) error { return p.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 2}) }), codes.Unavailable, "PROTOCOL_ERROR"},
		{"a frame of another stream", settled(func(p *peer) error { return p.respond(3) }), codes.Unavailable, "PROTOCOL_ERROR"},
		{"a stream of the server's", settled(func(p *peer) error { return p.respond(2) }), codes.Unavailable, "PROTOCOL_ERROR"},
		{"a push", settled(func(p *peer) error {
			return p.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: block(":method", "GET"), EndHeaders: true})
		}), codes.Unavailable, "PROTOCOL_ERROR"},
		{"a frame that is too long", settled(func(p *peer) error {
			_, err := p.nc.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
			return err
		}), codes.Unavailable, "FRAME_SIZE_ERROR"},
		{"continuations for ever", settled(func(p *peer) error {
			err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":status", "200")})
			for err == nil {
				err = p.WriteContinuation(1, false, block("x", strings.Repeat("y", 4000)))
			}
			return nil
		}), codes.Unavailable, "PROTOCOL_ERROR"},
		{"many fields", settled(func(p *peer) error {
			return p.headers(1, false, append([]string{":status", "200"}, repeat(600, "name", "a value of some bytes")...)...)
		}), codes.Internal, "more than 16384 bytes"},
		{"a field that is not one", settled(func(p *peer) error { return p.headers(1, false, ":status", "200", "UPPER", "x") }), codes.Internal, "broke the protocol"},
		{"another status", settled(func(p *peer) error { return p.headers(1, true, ":status", "404") }), codes.Unimplemented, "status 404"},
		{"another type", settled(func(p *peer) error { return p.headers(1, false, ":status", "200", "content-type", "text/html") }), codes.Unknown, "text/html"},
		{"headers twice", settled(func(p *peer) error { return errors.Join(p.respond(1), p.respond(1)) }), codes.Internal, "second header list"},
		{"data without headers", settled(func(p *peer) error { return p.WriteData(1, false, message("x")) }), codes.Internal, "before the response's headers"},
		{"no trailer", settled(func(p *peer) error { return errors.Join(p.respond(1), p.WriteData(1, true, message("x"))) }), codes.Internal, "without a trailer"},
		{"no status", settled(func(p *peer) error { return errors.Join(p.respond(1), p.headers(1, true, "x", "y")) }), codes.Unknown, "no grpc-status"},
		{"a status that is not a number", settled(func(p *peer) error { return errors.Join(p.respond(1), p.headers(1, true, "grpc-status", "-1")) }), codes.Internal, "malformed grpc-status"},
		{"half a message", settled(func(p *peer) error {
			return errors.Join(p.respond(1), p.WriteData(1, false, message("whole")[:7]), p.headers(1, true, "grpc-status", "0"))
		}), codes.Internal, "within a message"},
		{"compressed", settled(func(p *peer) error { return errors.Join(p.respond(1), p.WriteData(1, false, []byte{1, 0, 0, 0, 1, 0})) }), codes.Internal, "compressed"},
		{"too large a message", settled(func(p *peer) error {
			return errors.Join(p.respond(1), p.WriteData(1, false, binary.BigEndian.AppendUint32([]byte{0}, limit+1)))
		}), codes.ResourceExhausted, "larger than max (1048577 vs. 1048576)"},
		{"more than the window", settled(func(p *peer) error {
			err := errors.Join(p.respond(1), p.WriteData(1, false, message("")))
			for sent := 0; err == nil && sent < 2*windowBytes; sent += 1000 { // each of them whole, and nobody takes it
				err = p.WriteData(1, false, message(strings.Repeat("x", 995)))
			}
			return nil
		}), codes.Internal, "window"},
		{"a reset", settled(func(p *peer) error { return p.WriteRSTStream(1, http2.ErrCodeEnhanceYourCalm) }), codes.ResourceExhausted, "ENHANCE_YOUR_CALM"},
		{"a refusal", settled(func(p *peer) error { return p.WriteRSTStream(1, http2.ErrCodeRefusedStream) }), codes.Unavailable, "REFUSED_STREAM"},
		{"going away", settled(func(p *peer) error { return p.WriteGoAway(0, http2.ErrCodeNo, nil) }), codes.Unavailable, "no further streams"},
		{"too wide a stream", settled(func(p *peer) error { return p.WriteWindowUpdate(1, 1<<31-1) }), codes.Internal, "too large a window"},
		{"too wide a connection", settled(func(p *peer) error { return p.WriteWindowUpdate(0, 1<<31-1) }), codes.Unavailable, "FLOW_CONTROL_ERROR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := &held{}
			client, p := met(t, Options{MaxMessageBytes: limit, Received: memory})
			stream, err := client.Open(t.Context(), "/x.X/Y", limit)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if err := stream.Send(wrapperspb.String("x"), true); err != nil {
				t.Fatal(err)
			}
			p.discard()
			if err := test.do(p); err != nil {
				t.Fatal(err)
			}
			await(t, stream)
			for err == nil {
				err = stream.Receive(func([]byte) error { return nil })
			}
			if got := StatusOf(err); got.Code != test.code || !strings.Contains(got.Message, test.text) {
				t.Errorf("%v, want %v: %s", err, test.code, test.text)
			}
			stream.Close()
			if memory.now != 0 || memory.most > 2*windowBytes {
				t.Errorf("%d bytes are held, %d were", memory.now, memory.most)
			}
		})
	}
}

func settled(do func(*peer) error) func(*peer) error {
	return func(p *peer) error { return errors.Join(p.WriteSettings(), do(p)) }
}

func repeat(n int, fields ...string) (all []string) {
	for range n {
		all = append(all, fields...)
	}
	return all
}

// await waits until a stream has ended.
func await(t *testing.T, s *Stream) {
	t.Helper()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for s.err == nil {
		s.wake.Wait()
	}
}

// A server that never takes anything does not keep its caller.
func TestAWindowThatNeverOpens(t *testing.T) {
	for name, do := range map[string]func(*peer) error{
		"zero":     func(p *peer) error { return p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize}) },
		"as it is": func(p *peer) error { return p.WriteSettings() },
		"wide, and not read": func(p *peer) error {
			return errors.Join(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}), p.WriteWindowUpdate(0, 1<<30))
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, p := met(t, Options{})
			if err := do(p); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			stream, err := client.Open(ctx, "/x.X/Y", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if err := stream.Send(wrapperspb.Bytes(make([]byte, 8<<20)), true); !errors.Is(err, io.EOF) {
				t.Errorf("sending: %v", err)
			}
			if err := stream.Receive(nil); StatusOf(err).Code != codes.DeadlineExceeded {
				t.Errorf("receiving: %v", err)
			}
		})
	}
}

// One that has replies sent to it, and does not read them, has its connection ended.
func TestRepliesThatNobodyReads(t *testing.T) {
	client, p := met(t, Options{})
	err := p.WriteSettings()
	for err == nil {
		err = p.WritePing(false, [8]byte{})
	}
	if _, err := client.Open(t.Context(), "/x.X/Y", 0); StatusOf(err).Code != codes.Unavailable {
		t.Errorf("%v", err)
	}
}

func TestASilentServer(t *testing.T) {
	ours, _ := sockets(t)
	client := NewClient(ours, Options{}, 10*time.Millisecond)
	defer client.Close()
	stream, err := client.Open(t.Context(), "/x.X/Y", 0)
	if err == nil {
		defer stream.Close()
		err = stream.Receive(nil)
	}
	if StatusOf(err).Code != codes.Unavailable || !strings.Contains(err.Error(), "said nothing for 10ms") {
		t.Errorf("%v", err)
	}
}

// What came before the end is received all the same.
func TestMessagesBeforeTheEnd(t *testing.T) {
	client, p := met(t, Options{})
	stream, err := client.Open(t.Context(), "/x.X/Y", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	all := append(append(message("one"), message("")...), message("three")...)
	if err := errors.Join(p.WriteSettings(), p.respond(1)); err != nil {
		t.Fatal(err)
	}
	for _, b := range all { // a byte a frame
		if err := p.WriteData(1, false, []byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	p.nc.Close()
	await(t, stream)
	for _, want := range []string{"one", "", "three"} {
		if err := stream.Receive(func(got []byte) error {
			if string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Receive(nil); StatusOf(err).Code != codes.Unavailable {
		t.Errorf("%v", err)
	}
}

// A server that takes few streams at once gets the others later.
func TestMoreStreamsThanTheServerTakes(t *testing.T) {
	client, p := met(t, Options{})
	heard := make(chan struct{})
	client.mu.Lock()
	client.greeted = func() { close(heard) }
	client.mu.Unlock()
	if err := p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}); err != nil {
		t.Fatal(err)
	}
	<-heard
	first, err := client.Open(t.Context(), "/x.X/Y", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := client.Open(ctx, "/x.X/Y", 0); StatusOf(err).Code != codes.DeadlineExceeded {
		t.Errorf("a second one: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, first.Close)
	second, err := client.Open(t.Context(), "/x.X/Y", 0)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
