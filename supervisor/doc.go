// Package supervisor runs tools, one call at a time each in a process tree of
// its own, and says truthfully what happened.
//
// A call is a go-plugin child below a launcher, born in its own cgroup and PID
// namespace. It has a wall-clock timeout from admission on; when that is over
// (or the call is aborted, or a limit hit) the kill ladder begins: cooperative
// cancel and SIGTERM to every process, SIGKILL of the whole cgroup after the
// grace period, and a wait until the cgroup is empty. Whatever happens, the
// caller gets exactly one Result, no later than timeout + grace + 1 s, with
// everything that the tool had produced.
//
//	host, err := supervisor.New(ctx, supervisor.Config{})
//	...
//	defer host.Close()
//	result := host.Call(ctx, supervisor.Request{
//		Tool:      supervisor.Tool{Path: "bin/search"},
//		Arguments: json.RawMessage(`{"pattern":"TODO","path":"."}`),
//		Timeout:   5 * time.Second,
//	})
//	fmt.Println(result.Status, result.Text(), result.Message)
//
// This package is the interface, and ties rooms below it together: internal/prepare
// makes of a request what can be run, internal/call is the one goroutine that owns a
// call, internal/process a tool's process tree, internal/kept those that serve
// several calls, and internal/outcome the judgement. Package spec holds what a
// request consists of.
package supervisor
