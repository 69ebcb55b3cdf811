package bench

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// ours is a request of the plugin that is measured.
func ours() supervisor.Request {
	return supervisor.Request{Tool: supervisor.Tool{Path: self}, Arguments: arguments}
}

// firstReply starts a sandboxed call and waits for its tool's first word.
func firstReply(tb testing.TB, host *supervisor.Supervisor, request supervisor.Request) *supervisor.Call {
	events := make(chan api.Event, 16)
	request.Events = events
	call := host.Start(context.Background(), request)
	for {
		select {
		case e := <-events:
			if e.Kind == api.EventOutput {
				return call
			}
		case <-call.Done():
			tb.Fatal(call.Result().Message)
		}
	}
}

// ready brings an unsandboxed plugin up to its first Ping.
func ready(b *testing.B) *goplugin.Client {
	client := goplugin.NewClient(plainConfig())
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	if err := protocol.Ping(); err != nil {
		b.Fatal(err)
	}
	return client
}

// BenchmarkSandboxFirstReply: a sandboxed tool's first word against the
// readiness of an unsandboxed plugin.
func BenchmarkSandboxFirstReply(b *testing.B) {
	host := newHost(b)
	var last func()
	contest(b, func(b *testing.B) {
		call := firstReply(b, host, ours())
		last = func() { call.Result() }
	}, func(b *testing.B) {
		client := ready(b)
		last = client.Kill
	}, func() { last(); settle(host) })
}

const bigHeapBytes = 1 << 30

// BenchmarkSandboxBigHost: a first reply in a host with a heap of 1 GiB against
// one in a host without.
func BenchmarkSandboxBigHost(b *testing.B) {
	host := newHost(b)
	var heap []byte
	blocks(b, host, func() {
		heap = make([]byte, bigHeapBytes)
		for i := 0; i < len(heap); i += 4096 {
			heap[i] = 1
		}
	}, func() {
		heap = nil
		debug.FreeOSMemory()
	}, func(b *testing.B) { firstReply(b, host, ours()) })
	runtime.KeepAlive(heap)
}

// blocks measures reply in turn in two states of the host, a few at a time.
func blocks(b *testing.B, host *supervisor.Supervisor, enter, leave func(), reply func(*testing.B)) {
	const each = 10
	var with, without []time.Duration
	for b.Loop() {
		for _, state := range []struct {
			set  func()
			into *[]time.Duration
		}{{enter, &with}, {leave, &without}} {
			state.set()
			for range each {
				began := time.Now()
				reply(b)
				*state.into = append(*state.into, time.Since(began))
				settle(host)
			}
		}
	}
	report(b, with, without)
}

// BenchmarkSandboxAfterIdle: a first reply after 150 ms of nothing against one
// right after another.
func BenchmarkSandboxAfterIdle(b *testing.B) {
	host := newHost(b)
	var idle, busy []time.Duration
	timed := func() time.Duration {
		began := time.Now()
		call := firstReply(b, host, ours())
		took := time.Since(began)
		call.Result()
		settle(host)
		return took
	}
	timed()
	for b.Loop() {
		busy = append(busy, timed())
		time.Sleep(150 * time.Millisecond)
		idle = append(idle, timed())
		timed()
	}
	report(b, idle, busy)
}
