package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// pythonHost is examples/hosts/python on a daemon's socket.
func pythonHost(t *testing.T, socket string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(wait.Context(t), "python3", append([]string{"../../examples/hosts/python/host.py", "--socket", socket}, args...)...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// needPython: the example is to be tried wherever there is a Python.
func needPython(t *testing.T) {
	t.Helper()
	wholeSystem(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("needs python3 for examples/hosts/python: %v", err)
	}
}

// What the user got wrong is one line, and no traceback.
func TestPythonHostErrors(t *testing.T) {
	t.Parallel()
	needPython(t)
	nowhere := filepath.Join(t.TempDir(), "api.sock")
	for call, want := range map[string]struct {
		code int
		line string
	}{
		"greet {}": {1, "host.py: no daemon at " + nowhere + " (No such file or directory): start one with toolhost serve, or name its socket with --socket\n"},
		"greet {x": {2, "host.py: error: the arguments of greet are not JSON: "},
	} {
		cmd, _, stderr := pythonHost(t, nowhere, call)
		_ = cmd.Run() // its exit code tells more
		if cmd.ProcessState.ExitCode() != want.code || !strings.Contains(stderr.String(), want.line) || strings.Contains(stderr.String(), "Traceback") {
			t.Errorf("%s: exit code %d\n%s", call, cmd.ProcessState.ExitCode(), stderr)
		}
	}
}

func TestPythonHost(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, remoteTools)
	calls := []string{`greet {"name": "\u001b[2Jyou"}`, `remove {"path": "x"}`}
	for name, test := range map[string]struct {
		args  []string
		stdin string
		code  int
		out   string
	}{
		"--yes": {[]string{"--yes"}, "", 0, `"removed x\n"`},
		"yes":   {nil, "y\n", 0, `"removed x\n"`},
		"no":    {nil, "n\n", 1, `"status": "denied"`},
		"none":  {nil, "", 1, `"status": "denied"`},
	} {
		cmd, stdout, stderr := pythonHost(t, d.socket, append(test.args, calls...)...)
		cmd.Stdin = strings.NewReader(test.stdin)
		_ = cmd.Run() // its exit code tells more
		if got := cmd.ProcessState.ExitCode(); got != test.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, got, test.code, stderr)
		}
		inOrder := regexp.MustCompile(`(?s)^{"callId": "1", "tool": "greet", "status": "ok", .*\n{"callId": "2", "tool": "remove", `)
		if out := stdout.String(); !inOrder.MatchString(out) || !strings.Contains(out, test.out) {
			t.Errorf("%s: printed\n%s", name, out)
		}
		if strings.Contains(stderr.String(), "\x1b") {
			t.Errorf("%s: a tool's control sequence went to the terminal: %q", name, stderr)
		}
	}
	d.idle(t)
}

// A question that this host cannot put is settled, and nobody waits for it.
func TestPythonHostHasNoSecrets(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, "tools:\n  curious: {plugin: "+testBinary(t)+"}\n")
	for _, yes := range [][]string{nil, {"--yes"}} {
		cmd, stdout, stderr := pythonHost(t, d.socket, append(yes, `curious {"ask": "Password?", "secret": true, "then": "copes"}`)...)
		cmd.Stdin = strings.NewReader("y\n")
		if err := cmd.Run(); err != nil || !strings.Contains(stdout.String(), `"status": "ok"`) {
			t.Errorf("%q: %v\n%s%s", yes, err, stdout, stderr)
		}
	}
}

// Nobody has to press Enter for a question that was settled elsewhere.
func TestPythonHostIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, remoteTools)
	for name, test := range map[string]struct {
		settle func(asked api.Turn) error
		line   string
		code   int
	}{
		"approved": {func(asked api.Turn) error {
			return d.Answer(t.Context(), asked.PendingInteractions[0].ID, api.Answer{Approve: true})
		}, "remove: settled elsewhere, answered\n", exit.OK},
		"aborted": {func(asked api.Turn) error { return d.Abort(t.Context(), asked.TurnID) }, "remove: settled elsewhere, cancelled\n", exit.Failed},
	} {
		cmd, _, stderr := pythonHost(t, d.socket, `remove {"path": "x"}`)
		stdin, err := cmd.StdinPipe() // open, as a terminal is
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := test.settle(d.await(t, "asking")); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // its exit code tells more
		_ = stdin.Close()
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(stderr.String(), test.line) {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
	d.idle(t)
}

// A line begun for a question that is settled answers no other.
func TestPythonHostTakesNoLateAnswer(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, remoteTools)
	cmd, stdout, _ := pythonHost(t, d.socket, `remove {"path": "x"}`, `remove {"path": "y"}`)
	cmd.Stderr = nil
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	asks := func() {
		for buf := make([]byte, 1); !strings.HasSuffix(said.String(), "allow? [y/N] "); {
			n, err := stderr.Read(buf)
			if said.Write(buf[:n]); err != nil {
				t.Fatalf("%v after\n%s", err, said)
			}
		}
		said.WriteByte('\n')
	}
	asks()
	for _, i := range d.await(t, "asking").PendingInteractions {
		if strings.Contains(said.String(), "interaction_request "+i.CallID) {
			if err := d.Answer(wait.Context(t), i.ID, api.Answer{Approve: true}); err != nil {
				t.Error(err)
			}
		}
	}
	asks()
	_, _ = io.WriteString(stdin, "y\nn\n")
	_, _ = io.Copy(said, stderr)
	_ = cmd.Wait() // its exit code tells more
	if out := stdout.String(); cmd.ProcessState.ExitCode() != exit.Failed || strings.Count(out, `"removed `) != 1 || !strings.Contains(out, `"status": "denied"`) {
		t.Errorf("exit code %d, printed\n%s%s", cmd.ProcessState.ExitCode(), out, said)
	}
}

// Ctrl-C leaves nothing running, and neither does SIGKILL.
func TestPythonHostIsInterrupted(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, remoteTools)
	cmd, _, stderr := pythonHost(t, d.socket, "count")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.await(t, "running")
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exit.Aborted {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	d.idle(t)
}

// A stream that breaks off again and again loses no event and shows none twice.
func TestPythonHostReconnects(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := serve(t, remoteTools)
	proxy, cuts := cutting(t, d.socket)
	cmd, stdout, stderr := pythonHost(t, proxy, `greet {"name": "you"}`, `greet {"name": "me"}`)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var seqs []string
	for line := range strings.Lines(stderr.String()) {
		seq, _, _ := strings.Cut(line, " ")
		seqs = append(seqs, seq)
	}
	for i, seq := range seqs {
		if seq != fmt.Sprint(i+1) {
			t.Fatalf("events %v", seqs)
		}
	}
	if len(seqs) < 10 || !strings.Contains(stderr.String(), "turn_end") || cuts.Load() < 2 {
		t.Errorf("%d events, cut %d times, printed\n%s", len(seqs), cuts.Load(), stdout)
	}
}

// A stream that ends with an error is not asked for again: the rest of it cannot be read.
func TestPythonHostIsRefusedTheRest(t *testing.T) {
	t.Parallel()
	needPython(t)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var streams atomic.Int32
	mux := http.NewServeMux()
	answer := func(route, body string) {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	}
	answer("POST /api/turns", `{"turnId":"t"}`)
	answer("POST /api/turns/t/calls", `{"results":[{"callId":"1","tool":"greet","status":"ok","content":[],"message":""}]}`)
	answer("POST /api/turns/t/end", `{}`)
	mux.HandleFunc("GET /api/turns/t/events", func(w http.ResponseWriter, r *http.Request) {
		switch n, last := streams.Add(1), r.Header.Get("Last-Event-ID"); {
		case n > 3:
			fmt.Fprint(w, "id: 3\ndata: {\"seq\":3,\"kind\":\"turn_end\"}\n\n")
		case last == "0":
			fmt.Fprint(w, "id: 1\nevent: log\ndata: {\"seq\":1,\"kind\":\"log\"}\n\n")
		default:
			fmt.Fprint(w, "event: error\ndata: {\"error\":{\"code\":\"internal\",\"message\":\"the record is damaged\",\"remedy\":\"see the log\"}}\n\n")
		}
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	cmd, _, stderr := pythonHost(t, socket, "greet")
	if err := cmd.Run(); err != nil {
		t.Errorf("%v", err)
	}
	if got := stderr.String(); streams.Load() != 2 || got != "1 log\nthe record is damaged: see the log\n" {
		t.Errorf("%d streams, printed\n%s", streams.Load(), got)
	}
}

// maxBeforeCut is a few events.
const maxBeforeCut = 900

// cutting is a way to a daemon that cuts streams of events off after a few.
func cutting(t *testing.T, socket string) (path string, cuts *atomic.Int64) {
	t.Helper()
	path, cuts = filepath.Join(filepath.Dir(socket), "cut.sock"), new(atomic.Int64)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", socket)
			if err != nil {
				_ = from.Close()
				continue
			}
			go passOn(from, to, cuts)
		}
	}()
	return path, cuts
}

func passOn(from, to net.Conn, cuts *atomic.Int64) {
	defer from.Close()
	defer to.Close()
	head := make([]byte, 4096)
	n, _ := from.Read(head)
	_, _ = to.Write(head[:n])
	if bytes.Contains(head[:n], []byte("/events HTTP/")) {
		if n, _ := io.CopyN(from, to, maxBeforeCut); n == maxBeforeCut {
			cuts.Add(1)
		}
		return
	}
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}
