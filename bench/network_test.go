package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/network"
	"github.com/toolhost/toolhost/supervisor"
)

// networkVar has the tool measure the server at that address, as its text says.
const networkVar = "TOOLHOST_BENCH_NETWORK"

// What is measured: how long a stream takes, and in the median a connection to its
// first byte.
const (
	streamBytes = 1 << 30
	connections = 200
)

// measure is what both sides do: "stream" or "connect", against a server that
// sends as many bytes as it is asked for.
func measure(address, what string) (time.Duration, error) {
	if what == "stream" {
		return fetch(address, streamBytes)
	}
	var took []time.Duration
	for range connections {
		one, err := fetch(address, 1)
		if err != nil {
			return 0, err
		}
		took = append(took, one)
	}
	return median(took), nil
}

func fetch(address string, n int64) (time.Duration, error) {
	began := time.Now()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%d\n", n); err != nil {
		return 0, err
	}
	buf := make([]byte, 256<<10)
	for left := n; left > 0; {
		m, err := conn.Read(buf)
		if err != nil {
			return 0, err
		}
		left -= int64(m)
	}
	return time.Since(began), nil
}

// sender is that server.
func sender(b *testing.B) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go send(conn)
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func send(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 256<<10)
	m, err := conn.Read(buf[:32])
	if err != nil {
		return
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(buf[:m])))
	for clear(buf[:32]); n > 0; {
		m, err := conn.Write(buf[:min(n, len(buf))])
		if err != nil {
			return
		}
		n -= m
	}
	_, _ = io.Copy(io.Discard, conn)
}

// relayed is what a tool with a grant of the server measures.
func relayed(b *testing.B, host *supervisor.Supervisor, at netip.AddrPort, what string) time.Duration {
	r := host.Call(context.Background(), supervisor.Request{
		Tool: supervisor.Tool{Path: self}, Arguments: json.RawMessage(fmt.Sprintf(`{"text":%q}`, what)), Env: []string{networkVar + "=" + at.String()},
		Sandbox: granting(at), Limits: supervisor.Limits{CPUPercent: supervisor.Unlimited},
	})
	took, err := time.ParseDuration(strings.TrimSuffix(r.Text(), "begun"))
	if !r.OK() || err != nil {
		b.Fatal(r.Message, r.Text(), err)
	}
	return took
}

func granting(at netip.AddrPort) *supervisor.Policy {
	return &supervisor.Policy{Grants: []network.Grant{{Host: at.Addr().String(), Ports: []uint16{at.Port()}}}}
}

// BenchmarkRelay: what a tool has of a server over a grant, against the same
// over the plain loopback. ratio is theirs to ours of the stream: 0.5 is promised.
func BenchmarkRelay(b *testing.B) {
	host, at := newHost(b), sender(b)
	for _, what := range []string{"stream", "connect"} {
		b.Run(what, func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				ours = append(ours, relayed(b, host, at, what))
				plain, err := measure(at.String(), what)
				if err != nil {
					b.Fatal(err)
				}
				theirs = append(theirs, plain)
			}
			b.ReportMetric(float64(median(theirs))/float64(median(ours)), "of-loopback")
			b.ReportMetric(micros(median(ours)-median(theirs)), "added-µs")
			report(b, ours, theirs)
		})
	}
}

// BenchmarkUnusedGrants: a call with grants that it does not use, against one
// without a network.
func BenchmarkUnusedGrants(b *testing.B) {
	host, at := newHost(b), sender(b)
	call := func(policy *supervisor.Policy) func(*testing.B) {
		return func(b *testing.B) {
			r := host.Call(context.Background(), supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments, Sandbox: policy})
			if !r.OK() {
				b.Fatal(r.Message)
			}
		}
	}
	contest(b, call(granting(at)), call(&supervisor.Policy{}), func() { settle(host) })
}
