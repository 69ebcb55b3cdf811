package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// echo answers a message with itself, and hang with nothing before its end.
var echoes = map[string]Handler{
	"/x.X/Echo": Unary(func(_ context.Context, s *wrapperspb.StringValue) (*wrapperspb.StringValue, error) { return s, nil }),
	"/x.X/Hang": func(s *Stream) error {
		<-s.Context().Done()
		return context.Cause(s.Context())
	},
}

// served is one connection of a server; ended is closed when nothing of it is left.
func served(t testing.TB, memory Memory) (p *peer, ended <-chan struct{}) {
	t.Helper()
	theirs, ours := sockets(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewServer(Options{MaxMessageBytes: 1 << 20, Received: memory}, echoes).serve(ours)
	}()
	return &peer{http2.NewFramer(theirs, theirs), theirs}, done
}

func (p *peer) greet() error {
	_, err := p.nc.Write([]byte(http2.ClientPreface))
	return errors.Join(err, p.WriteSettings())
}

func (p *peer) request(id uint32, method string, end bool) error {
	return p.headers(id, end, ":method", "POST", ":scheme", "http", ":path", method, ":authority", "x", "content-type", "application/grpc")
}

// until reads frames until one is as wanted.
func (p *peer) until(t *testing.T, what string, wanted func(http2.Frame) bool) {
	t.Helper()
	for {
		f, err := p.ReadFrame()
		if err != nil {
			t.Fatalf("%v before %s", err, what)
		}
		if wanted(f) {
			return
		}
	}
}

func reset(id uint32, code http2.ErrCode) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		r, ok := f.(*http2.RSTStreamFrame)
		return ok && r.StreamID == id && r.ErrCode == code
	}
}

func away(code http2.ErrCode) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		return ok && g.ErrCode == code
	}
}

func ends(id uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		h, ok := f.(*http2.HeadersFrame)
		return ok && h.StreamID == id && h.StreamEnded()
	}
}

func TestHostileClient(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(p *peer) error
		want func(http2.Frame) bool
	}{
		{"an even stream", func(p *peer) error { return p.request(2, "/x.X/Echo", false) }, away(http2.ErrCodeProtocol)},
		{"a stream again", func(p *peer) error {
			return errors.Join(p.request(1, "/x.X/Hang", true), p.WriteRSTStream(1, http2.ErrCodeCancel), p.request(1, "/x.X/Echo", false))
		}, away(http2.ErrCodeStreamClosed)},
		{"data of no stream", func(p *peer) error { return p.WriteData(1, false, nil) }, away(http2.ErrCodeProtocol)},
		{"data after the end", func(p *peer) error { return errors.Join(p.request(1, "/x.X/Hang", true), p.WriteData(1, false, nil)) }, reset(1, http2.ErrCodeStreamClosed)},
		{"data of a stream that has ended", func(p *peer) error {
			return errors.Join(p.request(1, "/x.X/Hang", true), p.WriteRSTStream(1, http2.ErrCodeCancel), p.WriteData(1, false, nil))
		}, reset(1, http2.ErrCodeStreamClosed)},
		{"no window", func(p *peer) error { return p.WriteWindowUpdate(0, 1<<31-1) }, away(http2.ErrCodeFlowControl)},
		{"a reset of no stream", func(p *peer) error { return p.WriteRSTStream(1, http2.ErrCodeCancel) }, away(http2.ErrCodeProtocol)},
		{"a field that is not one", func(p *peer) error { return p.headers(1, false, ":method", "POST", "UPPER", "x") }, reset(1, http2.ErrCodeProtocol)},
		{"many fields", func(p *peer) error {
			return p.headers(1, true, append([]string{":method", "POST", ":path", "/"}, repeat(600, "name", "a value of some bytes")...)...)
		}, reset(1, http2.ErrCodeEnhanceYourCalm)},
		{"a GET", func(p *peer) error { return p.headers(1, true, ":method", "GET", ":path", "/", ":scheme", "http") }, ends(1)},
		{"no such method", func(p *peer) error { return p.request(1, "/x.X/Z", true) }, ends(1)},
		{"no message", func(p *peer) error { return p.request(1, "/x.X/Echo", true) }, ends(1)},
		{"a message that is not one", func(p *peer) error {
			return errors.Join(p.request(1, "/x.X/Echo", false), p.WriteData(1, true, message("\xff")))
		}, ends(1)},
		{"too large a message", func(p *peer) error {
			return errors.Join(p.request(1, "/x.X/Echo", false), p.WriteData(1, true, []byte{0, 1, 0, 0, 0}))
		}, reset(1, http2.ErrCodeCancel)},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := &held{}
			p, ended := served(t, memory)
			if err := errors.Join(p.greet(), test.do(p)); err != nil {
				t.Fatal(err)
			}
			p.until(t, test.name, test.want)
			p.nc.Close()
			if <-ended; memory.now != 0 {
				t.Errorf("%d bytes are held", memory.now)
			}
		})
	}
}

func TestAClientThatIsNone(t *testing.T) {
	p, ended := served(t, &held{})
	if _, err := io.WriteString(p.nc, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// Streams that are opened and reset at once do not outnumber what is handled.
func TestRapidResets(t *testing.T) {
	block, running := make(chan struct{}), make(chan struct{}, 2*maxStreams)
	theirs, ours := sockets(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewServer(Options{}, map[string]Handler{"/x": func(*Stream) error {
			running <- struct{}{}
			<-block // deaf to its end
			return nil
		}}).serve(ours)
	}()
	p := &peer{http2.NewFramer(theirs, theirs), theirs}
	go func() {
		err := p.greet()
		for id := uint32(1); err == nil && id < 2*(maxStreams+100); id += 2 {
			err = errors.Join(p.request(id, "/x", true), p.WriteRSTStream(id, http2.ErrCodeCancel))
		}
	}()
	p.until(t, "a refusal", reset(2*maxStreams+1, http2.ErrCodeRefusedStream))
	for range maxStreams {
		<-running
	}
	if len(running) > 0 {
		t.Errorf("%d more than %d are handled", len(running), maxStreams)
	}
	close(block)
	p.nc.Close()
	<-done
}

// Stop lets what runs end, and takes no more.
func TestStop(t *testing.T) {
	s := NewServer(Options{}, map[string]Handler{"/x": func(s *Stream) error {
		if err := s.Send(wrapperspb.String("begun"), false); err != nil {
			return err
		}
		return s.ReceiveMessage(&wrapperspb.StringValue{})
	}})
	client := dial(t, listen(t, s), Options{})
	stream, err := client.Open(t.Context(), "/x", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := stream.Receive(func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	for err == nil {
		var more *Stream
		if more, err = client.Open(t.Context(), "/x", 100); err == nil {
			err = more.Receive(func([]byte) error { return nil })
			more.Close()
		}
	}
	if StatusOf(err).Code != codes.Unavailable {
		t.Errorf("after the stop: %v", err)
	}
	if err := stream.Send(wrapperspb.String("x"), true); err != nil {
		t.Fatal(err)
	}
	if err := stream.Receive(nil); !errors.Is(err, io.EOF) {
		t.Errorf("what ran ended with %v", err)
	}
}

// FuzzConn has both sides hear anything after a good beginning: they end with the
// connection, and hold nothing then.
func FuzzConn(f *testing.F) {
	var b strings.Builder
	p := &peer{Framer: http2.NewFramer(&b, nil)}
	for _, do := range []func() error{
		func() error { return p.WriteSettings() },
		func() error { return p.request(1, "/x.X/Echo", false) },
		func() error { return p.respond(1) },
		func() error { return p.WriteData(1, false, message("abc")) },
		func() error { return p.WriteWindowUpdate(1, 7) },
		func() error { return p.WritePing(false, [8]byte{}) },
		func() error { return p.WriteGoAway(1, 0, nil) },
		func() error { return p.headers(1, true, "grpc-status", "0") },
	} {
		if err := do(); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(b.String()), true)
		f.Add([]byte(b.String()), false)
	}
	f.Fuzz(func(t *testing.T, heard []byte, toClient bool) {
		ours, theirs := net.Pipe()
		memory := &held{}
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		speak := func() {
			p := &peer{http2.NewFramer(theirs, nil), theirs}
			if !toClient {
				_, _ = p.nc.Write([]byte(http2.ClientPreface))
			}
			_ = p.WriteSettings()
			_, _ = theirs.Write(heard)
			theirs.Close()
		}
		if !toClient {
			go speak()
			NewServer(Options{MaxMessageBytes: 1 << 10, Received: memory}, echoes).serve(ours)
		} else {
			client := NewClient(ours, Options{MaxMessageBytes: 1 << 10, Received: memory}, time.Minute)
			stream, err := client.Open(t.Context(), "/x.X/Y", 1<<10)
			go speak()
			if err == nil {
				for err == nil {
					err = stream.Receive(func([]byte) error { return nil })
				}
				stream.Close()
			}
			client.Close()
		}
		if memory.now != 0 {
			t.Fatalf("%d bytes are held", memory.now)
		}
	})
}
