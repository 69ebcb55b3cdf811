package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// echoServer is an MCP server with the tool echo.
const echoServer = `import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}},
         "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
         "tools/call": {"content": [{"type": "text", "text": "echoed"}]}}.get(m["method"])
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **({"result": r} if r else {"error": {"code": -32601, "message": "unknown"}})}), flush=True)
`

// A daemon goes on as what it is when the file that it was started from is gone, or is
// another program: adapters and the network relay are not started from there.
func TestTheProgramIsReplaced(t *testing.T) {
	t.Parallel()
	wholeSystem(t)
	needPython(t)
	dir := t.TempDir()
	program, server := filepath.Join(dir, "toolhost"), filepath.Join(dir, "server.py")
	if out, err := exec.Command("cp", testBinary(t), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(server, []byte(echoServer), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	d := serveBy(t, program, fmt.Sprintf("tools:\n  reach: {command: [bash, -c, \"exec 3<>/dev/tcp/127.0.0.1/%d\"], network: [\"127.0.0.1:%d\"]}\n  s: {mcp: [python3, %s], read: [%s]}\n", port, port, server, server))
	call := func(what string) {
		t.Helper()
		for _, tool := range []string{"reach", "s__echo"} {
			results, err := d.RunTurn(wait.Context(t), api.TurnSpec{Headless: true}, []api.Call{{ID: "1", Tool: tool}})
			if err != nil || len(results) != 1 || !results[0].OK() {
				t.Errorf("%s: %s: %v, %+v", what, tool, err, results)
			}
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	call("the program is gone")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho another\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	call("another program is there")
}
