// Package supervisor runs tool calls, each in its own process tree, and reports
// what happened to them.
//
// A call is a go-plugin child below a launcher, born in its own cgroup and PID
// namespace. Its wall-clock timeout runs from admission. When it expires, or the
// call is aborted or hits a limit, the kill ladder begins: cooperative cancel and
// SIGTERM to every process, SIGKILL of the whole cgroup after the grace period,
// and a wait until the cgroup is empty. Whatever happens, the caller gets exactly
// one Result, no later than timeout + grace + 1 s, with everything that the tool
// had produced.
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
// This package is the interface to the packages below it: internal/prepare turns a
// request into something that can be run, internal/call is the goroutine that owns a
// call, internal/process a tool's process tree, internal/kept the processes that
// serve several calls, and internal/outcome decides what a call came to. Package spec
// defines requests.
package supervisor
