package mcp

import (
	"fmt"
	"os"
	"testing"

	"github.com/toolhost/toolhost/internal/fifo"
	"github.com/toolhost/toolhost/plugin"
)

// Servers that answer one call and end as the next one comes.
func init() {
	for name, read := range map[string]int{"ends unasked": 0, "ends asked": 1} {
		scripts[name] = func(p *peer) {
			p.initialize()
			p.text(p.call(), fmt.Sprint(os.Getpid()))
			for stdin, err := os.Stdin.SyscallConn(); err == nil; {
				if held, _ := fifo.Held(stdin); held > 0 {
					break
				}
			}
			_, _ = os.Stdin.Read(make([]byte, read))
			os.Exit(0)
		}
	}
	scripts["ends at a list"] = func(p *peer) {
		p.initialize()
		for called := false; ; {
			switch m := p.next(); {
			case m.Method == "tools/list" && called:
				os.Exit(0)
			case m.Method == "tools/list":
				p.answer(m, `{"tools":[{"name":"x_0123456789","inputSchema":{"type":"object"}}]}`)
			case m.Method == "tools/call":
				p.text(m, fmt.Sprint(os.Getpid()))
				called = true
			}
		}
	}
}

// A call that a server has read nothing of when it ended is another server's.
func TestAServerThatEndsAsItIsCalled(t *testing.T) {
	t.Parallel()
	a := server(t, "ends unasked")
	seen := map[string]bool{}
	for range 5 {
		r, o := call1(t, a, "x", "{}")
		if o.err != nil {
			t.Fatal(o.err)
		}
		seen[r.text()] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d servers", len(seen))
	}
}

// One that a server has read something of may have begun, and is not made again.
func TestAServerThatEndsWithItsCall(t *testing.T) {
	t.Parallel()
	a := server(t, "ends asked")
	if _, o := call1(t, a, "x", "{}"); o.err != nil {
		t.Fatal(o.err)
	}
	_, o := call1(t, a, "x", "{}")
	expectFailure(t, "the second call", o.err, plugin.Crashed, "exited with status 0")
}

// One that a server has not even been told is another server's, too.
func TestAServerThatEndsAsItIsAskedForNames(t *testing.T) {
	t.Parallel()
	a := server(t, "ends at a list")
	for _, tool := range []string{"x", "x_0123456789"} {
		if _, o := call1(t, a, tool, "{}"); o.err != nil {
			t.Errorf("%s: %v", tool, o.err)
		}
	}
}
