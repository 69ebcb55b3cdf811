package rpc

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The time of a bubble passes only while all sleep, so that a flood takes none.
func TestFloods(t *testing.T) {
	begin := func(p *peer) error { return p.respond(1) }
	read := func(err error) error { // has what was answered read: else that may end the connection before
		synctest.Wait()
		return err
	}
	for _, test := range []struct {
		name  string
		begin func(*peer) error
		write func(*peer) error
		flood bool
	}{
		{"of unknown frames", begin, func(p *peer) error { return p.WriteRawFrame(0xff, 0, 0, nil) }, true},
		{"of priorities", begin, func(p *peer) error { return p.WritePriority(1, http2.PriorityParam{StreamDep: 3}) }, true},
		{"of updates", begin, func(p *peer) error { return p.WriteWindowUpdate(1, 1) }, true},
		{"of settings", begin, func(p *peer) error { return read(p.WriteSettings()) }, true},
		{"of pings", begin, func(p *peer) error { return read(p.WritePing(false, [8]byte{})) }, true},
		{"of acknowledgements", begin, func(p *peer) error { return p.WriteSettingsAck() }, true},
		{"of resets", begin, func(p *peer) error { return p.WriteRSTStream(1, http2.ErrCodeCancel) }, true},
		{"of data without bytes", begin, func(p *peer) error { return p.WriteData(1, false, nil) }, true},
		{"of padding", begin, func(p *peer) error { return p.WriteDataPadded(1, false, nil, make([]byte, 255)) }, true},
		{"of single bytes", func(p *peer) error {
			return errors.Join(p.respond(1), p.WriteData(1, false, []byte{0, 0, 16, 0, 0}))
		}, func(p *peer) error { return p.WriteData(1, false, []byte{0}) }, true},
		{"of interim responses", nil, func(p *peer) error { return p.headers(1, false, ":status", "103") }, true},
		{"within a header list", func(p *peer) error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":status", "200")})
		}, func(p *peer) error { return p.WriteContinuation(1, false, nil) }, true},
		{"of data of a stream that has ended", func(p *peer) error {
			return p.headers(1, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
		}, func(p *peer) error { return p.WriteData(1, false, make([]byte, 1000)) }, true},

		{"messages of a byte", begin, func(p *peer) error { return p.WriteData(1, false, message("x")) }, false},
		{"messages behind their prefixes", begin, func(p *peer) error {
			return errors.Join(p.WriteData(1, false, message("x")[:prefixBytes]), p.WriteData(1, false, []byte("x")))
		}, false},
		{"pings now and then", begin, func(p *peer) error {
			time.Sleep(10 * time.Millisecond)
			return p.WritePing(false, [8]byte{})
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, p := piped(t)
				stream, err := client.Open(t.Context(), "/x.X/Y", 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				if err := errors.Join(stream.Send(wrapperspb.String("x"), true), p.WriteSettings()); err != nil {
					t.Fatal(err)
				}
				if test.begin != nil {
					err = test.begin(p)
				}
				frames := 40_000 // whose messages fit the window
				if test.flood {
					frames = 60_000
				}
				for sent := 0; err == nil && sent < frames; sent++ {
					err = test.write(p)
				}
				synctest.Wait()
				if got := strings.Contains(client.Broken(), "floods the connection"); got != test.flood {
					t.Errorf("broken: %q, written: %v", client.Broken(), err)
				}
			})
		})
	}
}

// What the host asks for is no flood, however often it asks.
func TestManyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := piped(t)
		err := p.WriteSettings()
		for range 10_000 {
			stream, openErr := client.Open(t.Context(), "/x.X/Y", 100)
			if openErr != nil {
				t.Fatal(openErr)
			}
			id := stream.id
			err = errors.Join(err, stream.Send(wrapperspb.String("x"), true), p.WriteWindowUpdate(0, 6), p.WritePing(false, [8]byte{}),
				p.respond(id), p.WriteData(id, false, message("")), p.headers(id, true, "grpc-status", "0"))
			err = errors.Join(err, stream.Receive(func([]byte) error { return nil }))
			if end := stream.Receive(nil); !errors.Is(end, io.EOF) {
				t.Fatal(end)
			}
			stream.Close()
		}
		if err != nil || client.Broken() != "" {
			t.Errorf("%v, broken: %q", err, client.Broken())
		}
	})
}

// piped is met in a bubble, where nothing waits for the system.
func piped(t *testing.T) (*Client, *peer) {
	ours, theirs := net.Pipe()
	client := NewClient(ours, Options{MaxMessageBytes: 1 << 20}, time.Minute)
	t.Cleanup(client.Close)
	p := &peer{http2.NewFramer(theirs, theirs), theirs}
	p.discard()
	return client, p
}
