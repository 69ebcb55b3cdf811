package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// asClient is how the test binary is told to be a client that gets killed.
const asClient = "mcpserver-test-client"

// built is the folder of the toolhost command, which TestMain removes.
var built = sync.OnceValues(func() (dir string, err error) {
	wasBuilt.Store(true)
	if dir, err = os.MkdirTemp("", "mcpserver-test-"); err != nil {
		return "", err
	}
	return dir, binaries.Into(dir, "toolhost", "search")
})

var wasBuilt atomic.Bool

// command is toolhost mcp with the test binary's tools, or with a configuration.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if len(args) == 0 {
		args = []string{"--plugin", self(t)}
	}
	cmd := exec.Command(filepath.Join(dir, "toolhost"), append([]string{"mcp", "--state", "none"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func configured(t testing.TB, yaml string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return command(t, "--config", path)
}

// raw is a server whose client has no manners.
type raw struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	read io.ReadCloser
}

// start begins a session by hand.
func start(t testing.TB, cmd *exec.Cmd) *raw {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &raw{cmd: cmd, in: in, out: bufio.NewReader(out), read: out}
	r.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	line, err := r.out.ReadString('\n')
	if err != nil || !json.Valid([]byte(line)) {
		t.Fatalf("%q, %v", line, err)
	}
	r.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

func (r *raw) send(t testing.TB, message string) {
	t.Helper()
	if _, err := io.WriteString(r.in, message+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (r *raw) hang(t testing.TB) (mark string) {
	t.Helper()
	mark = newMark()
	r.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{"mark":%q}}}`, mark))
	waitAlive(t, mark)
	return mark
}

func TestStdio(t *testing.T) {
	for _, k := range kinds[:2] {
		c := connectTo(t, &mcpsdk.CommandTransport{Command: command(t)}, k, nil)
		if r := invoke(t, c, params("say", arguments{Text: "hello"})); text(r) != "hello" {
			t.Error(text(r))
		}
		status := invoke(t, c, params("session_status", arguments{}))
		if s, ok := status.StructuredContent.(map[string]any); !ok || s["callCount"] != 1.0 || s["host"] == nil {
			t.Errorf("status %v", status.StructuredContent)
		}
		if raw, _ := json.Marshal(status); len(raw) >= 600 || strings.Contains(string(raw), "cgroup") {
			t.Errorf("a status of %d bytes: %s", len(raw), raw)
		}
	}
}

// Whatever ends a session takes the calls' processes with it.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		end  func(t *testing.T, r *raw)
		code int
	}{
		"closing stdin": {func(t *testing.T, r *raw) { _ = r.in.Close() }, 0},
		"SIGTERM":       {func(t *testing.T, r *raw) { _ = r.cmd.Process.Signal(syscall.SIGTERM) }, 0},
		"SIGKILL":       {func(t *testing.T, r *raw) { _ = r.cmd.Process.Kill() }, -1},
		"closing both":  {func(t *testing.T, r *raw) { _ = r.read.Close(); _ = r.in.Close() }, 0},
		"closing stdout": {func(t *testing.T, r *raw) {
			_ = r.read.Close()
			r.send(t, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		}, 1},
		"half a line": {func(t *testing.T, r *raw) {
			_, _ = io.WriteString(r.in, `{"jsonrpc":"2.0","id":7,"method":"too`)
			_ = r.in.Close()
		}, 0},
		"garbage for ever": {func(t *testing.T, r *raw) {
			for err := error(nil); err == nil; { // and no answer is taken
				_, err = io.WriteString(r.in, "}{\n")
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, command(t))
			mark := r.hang(t)
			one.end(t, r)
			waitGone(t, mark)
			_ = r.cmd.Wait()
			if code := r.cmd.ProcessState.ExitCode(); code != one.code {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// A cancelled request ends, and gets no answer; the session goes on.
func TestCancelledIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, command(t))
	mark := r.hang(t)
	r.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	waitGone(t, mark)
	r.send(t, `{"jsonrpc":"2.0","id":"next","method":"tools/call","params":{"name":"say","arguments":{"text":"hello"}}}`)
	_, line := r.answer(t)
	_ = r.in.Close()
	rest, err := io.ReadAll(r.out)
	if err != nil || !strings.Contains(line, "hello") || strings.Contains(line+string(rest), `"id":2`) {
		t.Errorf("%s%s, %v", line, rest, err)
	}
	_ = r.cmd.Wait()
}

// Whatever comes that is not a message is answered, and ends neither the session
// nor a call under way.
func TestNonsense(t *testing.T) {
	t.Parallel()
	r := start(t, command(t, "--plugin", self(t), "--timeout", "10m"))
	mark := r.hang(t)
	for name, one := range map[string]struct{ line, id, says string }{
		"garbage":     {"garbage", "null", "-32700"},
		"half":        {`{"jsonrpc":"2.0","id":7,"method":"ping"`, "null", "-32700"},
		"key twice":   {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say","name":"wipe"}}`, "7", "there twice"},
		"id in use":   {`{"jsonrpc":"2.0","id":2,"method":"ping"}`, "null", "use each only once"},
		"bad, in use": {`{"jsonrpc":"1.0","id":2,"method":"ping"}`, "null", "not a JSON-RPC 2.0 message"},
		"fraction":    {`{"jsonrpc":"2.0","id":2.5,"method":"ping"}`, "2.5", "neither"},
		"deep":        {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}`, "7", "deeper"},
		"long":        {strings.Repeat("x", maxMessageBytes+1), "null", "more than"},
		"batch":       {`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, "null", "not a JSON object"},
		"no method":   {`{"jsonrpc":"2.0","id":7,"method":"nope"}`, "7", "-32601"},
		"no params":   {`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, "7", "-32602"},
		"CRLF, whole": {`{"jsonrpc":"2.0","id":"x","method":"ping"}` + "\r", `"x"`, `"result":{}`},
	} {
		r.send(t, one.line)
		if id, line := r.answer(t); id != one.id || !strings.Contains(line, one.says) {
			t.Errorf("%s: %s", name, line)
		}
	}
	r.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2.5}}`)
	r.send(t, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if id, line := r.answer(t); id != "8" || !alive(mark) {
		t.Errorf("a fraction cancels: %s", line)
	}
	_ = r.in.Close()
	waitGone(t, mark)
	if err := r.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// answer is the next line that is one.
func (r *raw) answer(t testing.TB) (id, line string) {
	t.Helper()
	for {
		line, err := r.out.ReadString('\n')
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err != nil || json.Unmarshal([]byte(line), &m) != nil {
			t.Fatalf("%q, %v", line, err)
		}
		if m.Method == "" {
			return string(m.ID), line
		}
	}
}

// Lines from a file, and its end: what was asked is answered.
func TestPipedIn(t *testing.T) {
	cmd := command(t)
	cmd.Stdin = strings.NewReader("\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
[{"jsonrpc":"2.0","id":2,"method":"ping"},5,{"jsonrpc":"2.0","id":3,"method":"tools/list"}]
[]
{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	out, err := cmd.Output()
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"serverInfo"`, `"id":2,"result":{}`, `"id":null,"error"`, `"say"`, "the batch is empty", `"id":4,"result":{}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// A client that takes nothing any more holds up no end.
func TestClientIsStuck(t *testing.T) {
	t.Parallel()
	r := start(t, command(t))
	mark := r.hang(t)
	for i := range 1000 { // answers for more than a pipe holds
		r.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+10))
	}
	_ = r.in.Close()
	waitGone(t, mark)
	wait.Until(t, "toolhost has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	_ = r.cmd.Wait()
}

// A client that is killed cannot say so.
func TestClientIsKilled(t *testing.T) {
	t.Parallel()
	mark := newMark()
	server := command(t)
	client := exec.Command(self(t), append([]string{asClient, mark}, server.Args...)...)
	client.Stderr = os.Stderr
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	waitAlive(t, mark)
	wait.Until(t, "the tool runs", func() bool { return tools(mark) > 0 })
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	waitGone(t, mark)
}

// tools counts the tool's own children, which are shells.
func tools(mark string) int { return len(processes.WithArguments(mark, "trap")) }

func playClient(args []string) {
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "victim", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcpsdk.CommandTransport{Command: exec.Command(args[1], args[2:]...)}, nil)
	if err == nil {
		_, err = session.CallTool(context.Background(), params("hang", arguments{Mark: args[0]}))
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	os.Exit(1)
}

// What a tool or a fault prints is not for stdout: the client reads it.
func TestStdoutIsTheProtocols(t *testing.T) {
	t.Parallel()
	r := start(t, configured(t, `tools: {gone: {mcp: [/bin/nothing-there]}, greet: {command: [echo, "hello {name}"]}}`))
	r.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	for {
		line, err := r.out.ReadString('\n')
		if err != nil || !json.Valid([]byte(line)) {
			t.Fatalf("%q, %v", line, err)
		}
		if strings.Contains(line, `"id":2`) {
			if !strings.Contains(line, `"greet"`) || strings.Contains(line, "gone__") {
				t.Error(line)
			}
			break
		}
	}
	_ = r.in.Close()
	rest, err := io.ReadAll(r.out)
	for line := range strings.Lines(string(rest)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("on stdout: %q", line)
		}
	}
	if err != nil || r.cmd.Wait() != nil {
		t.Errorf("%v, %s", err, r.cmd.ProcessState)
	}
}

// The reference server's long tool, wrapped and served by toolhost, ends at its
// deadline.
func TestEverythingServer(t *testing.T) {
	t.Parallel()
	stage.Of(t, "interop")
	dir := npm.Folder(t, "../../../examples/mcp")
	c := connectTo(t, &mcpsdk.CommandTransport{Command: configured(t, fmt.Sprintf(`
tools:
  every:
    mcp: [node, %[1]s/node_modules/@modelcontextprotocol/server-everything/dist/index.js]
    read: [%[1]s]
    memory: 2GiB
    pids: 256
`, dir))}, kinds[0], nil)
	quick := invoke(t, c, &mcpsdk.CallToolParams{Name: "every__echo", Arguments: map[string]any{"message": "hi"}})
	if quick.IsError || !strings.Contains(text(quick), "Echo: hi") {
		t.Fatal(text(quick))
	}
	enough := 3*execution(t, quick).Timing.ElapsedMs + 3000
	r := invoke(t, c, &mcpsdk.CallToolParams{
		Name: "every__trigger-long-running-operation", Arguments: map[string]any{"duration": 10 * enough / 1000, "steps": 100 * enough / 1000},
		Meta: mcpsdk.Meta{"dev.toolhost/timeoutMs": enough, "progressToken": "p"},
	})
	own := execution(t, r)
	if !r.IsError || own.Status != api.StatusTimeout || own.Kill.Survivors != 0 || !strings.HasPrefix(text(r), "[TIMEOUT]") || !strings.Contains(text(r), "the last progress was") {
		t.Errorf("%s, %+v: %s", own.Status, own.Kill, text(r))
	}
}
