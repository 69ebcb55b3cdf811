package bench

import (
	"runtime"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// maxCallBytes bounds what a call has the host allocate, which no noise of the
// machine changes: it was 365 KiB with buffers that did not grow.
const maxCallBytes = 256 << 10

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
