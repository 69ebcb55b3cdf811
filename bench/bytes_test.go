package bench

import (
	"os"
	"runtime"
	"runtime/pprof"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// maxCallBytes bounds what a call has the host allocate, which no noise of the
// machine changes: it was 148 KiB with the client of grpc-go.
const maxCallBytes = 140 << 10

func TestBytesOfACall(t *testing.T) {
	host, err := supervisor.New(t.Context(), supervisor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	const calls = 20
	call := func() {
		r := host.Call(t.Context(), supervisor.Request{Command: &supervisor.Command{Argv: []string{"true"}}})
		if !r.OK() {
			t.Fatal(r.Message)
		}
	}
	call() // what is found out once does not count
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / calls
	t.Logf("%d KiB, %d objects a call", each>>10, (after.Mallocs-before.Mallocs)/calls)
	if each > maxCallBytes {
		t.Errorf("a call allocates %d KiB, over %d", each>>10, maxCallBytes>>10)
	}
}

// maxCallGoroutines bounds those of a call that runs: it was 18, and 25 more came and
// went, with the clients of go-plugin and grpc-go.
const maxCallGoroutines = 14

func TestGoroutinesOfACall(t *testing.T) {
	host, err := supervisor.New(t.Context(), supervisor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	start := func() *supervisor.Call {
		return firstReply(t, host, supervisor.Request{Command: &supervisor.Command{Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}}})
	}
	end := func(call *supervisor.Call) {
		call.Abort(api.Reason("test"))
		<-call.Gone()
	}
	end(start()) // what is there once does not count
	before := runtime.NumGoroutine()
	const calls = 4
	var running []*supervisor.Call
	for range calls {
		running = append(running, start())
	}
	each := (runtime.NumGoroutine() - before + calls - 1) / calls
	if t.Logf("%d goroutines a call", each); each > maxCallGoroutines {
		t.Errorf("a call has %d goroutines, over %d:", each, maxCallGoroutines)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	for _, call := range running {
		end(call)
	}
}
