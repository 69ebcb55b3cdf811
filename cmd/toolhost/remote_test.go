package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/testenv/pty"
	"github.com/toolhost/toolhost/internal/testenv/script"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// served is a daemon that a test has started.
type served struct {
	*client.Client
	dir, socket, url, token string // token is its file
	pid                     int
	killed                  bool // by its test
}

// wholeSystem is for tests that run commands such as sh, curl and python3.
func wholeSystem(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("runs commands of a whole system, such as sh and curl, which the VM does not have")
	}
}

// serve starts toolhost serve with the tools of a configuration, on a unix
// socket and on TCP, and ends it with the test.
func serve(t *testing.T, tools string) *served {
	t.Helper()
	wholeSystem(t)
	return serveBy(t, testBinary(t), tools)
}

func serveBy(t *testing.T, binary, tools string) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "toolhost-remote-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &served{dir: dir, socket: filepath.Join(dir, "api.sock"), token: filepath.Join(dir, "state", "token")}
	config := filepath.Join(dir, "toolhost.yaml")
	own := "dirs: {store: " + filepath.Join(dir, "store") + "}\n" // the machine's may be full of other tests' binaries
	if err := os.WriteFile(config, []byte(own+tools), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, asToolhost, "serve", "--config", config, "--state", filepath.Join(dir, "state"), "--socket", d.socket, "--listen", "127.0.0.1:0")
	log := &lines{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGTERM) // what a failed test has left is not waited for
		if err := cmd.Wait(); err != nil && !d.killed {
			t.Errorf("the daemon ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the daemon has logged\n%s", log.String())
		}
	})
	if d.Client, err = client.New(client.Options{Socket: d.socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	d.awaitReady(t, log)
	return d
}

// lines are what a process logs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var tcpAddress = regexp.MustCompile(`"address":"(127\.0\.0\.1:[0-9]+)","network":"tcp"`)

// awaitReady waits until the daemon takes calls, and answers on TCP as well.
func (d *served) awaitReady(t *testing.T, log *lines) {
	t.Helper()
	ctx := wait.Context(t)
	wait.Until(t, "the daemon to be ready", func() bool { return d.Ready(ctx) == nil })
	wait.Until(t, "the daemon to answer on TCP", func() bool {
		found := tcpAddress.FindStringSubmatch(log.String())
		if found == nil {
			return false
		}
		d.url = "http://" + found[1]
		response, err := http.Get(d.url + "/api/health")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
}

const remoteTools = `tools:
  greet: {command: [echo, "Hello, {name}!"], readOnly: true}
  count: {command: [sh, -c, "i=0; while :; do i=$$((i+1)); echo $$i; sleep 1; done"], timeout: 10m}
  remove: {command: [echo, "removed {path}"], mode: ask}
  broken: {plugin: /bin/true}
`

// TestRemoteScripts runs the files in testdata/remote, each beside a daemon of
// its own.
func TestRemoteScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "remote", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts, %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			d := serve(t, remoteTools)
			testscript.Run(t, testscript.Params{
				Files: []string{file},
				Setup: func(env *testscript.Env) error {
					env.Setenv("HOME", env.WorkDir)
					env.Setenv("TOOLHOST_SOCKET", d.socket)
					env.Setenv("DIR", d.dir)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": script.Exits, "until": until},
			})
		})
	}
}

// until runs a command line again and again, until its output matches: until
// PATTERN COMMAND ...
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND ...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	var last string
	for range 2000 { // each takes a while; this is only there to end a test that hangs
		if ts.Exec(args[1], args[2:]...) == nil {
			if last = ts.ReadFile("stdout"); pattern.MatchString(last) {
				return
			}
		}
	}
	ts.Fatalf("never matched %q: %s", args[0], last)
}

// onDaemon is a command on a terminal that talks to the daemon.
func (d *served) onTerminal(t *testing.T, p *pty.PTY, env []string, args ...string) (ended func(code int) string) {
	t.Helper()
	return onTerminal(t, p, append([]string{"TOOLHOST_SOCKET=" + d.socket}, env...), args...)
}

// await waits for a state of the one call that the daemon runs, and gives its
// turn.
func (d *served) await(t *testing.T, state string) api.Turn {
	t.Helper()
	ctx := wait.Context(t)
	var found api.Turn
	wait.Until(t, "a call to be "+state, func() bool {
		turns, err := d.Active(ctx)
		if err != nil || len(turns) == 0 || len(turns[0].CurrentTools) == 0 || turns[0].CurrentTools[0].State != state {
			return false
		}
		found = turns[0]
		return state != "asking" || len(found.PendingInteractions) > 0
	})
	return found
}

// idle waits until no turn is left: nothing stays behind for a command that is
// over.
func (d *served) idle(t *testing.T) {
	t.Helper()
	ctx := wait.Context(t)
	wait.Until(t, "all turns to be over", func() bool {
		turns, err := d.Active(ctx)
		return err == nil && len(turns) == 0
	})
}

func TestCallAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	for keys, want := range map[string]struct {
		code int
		out  string
	}{
		"y\r": {exit.OK, "removed x"}, "n\r": {exit.Failed, ""}, "\x03": {exit.Aborted, ""},
	} {
		p := pty.New(t)
		ended := d.onTerminal(t, p, nil, "call", "remove", "path=x")
		p.Expect(t, "allow? [y/n/a]", 1)
		p.Type(t, keys)
		if out := ended(want.code); !strings.Contains(out, want.out) {
			t.Errorf("%q: printed %q, want %q", keys, out, want.out)
		}
	}
	d.idle(t)
}

// A question that somebody else answers is taken back from the terminal.
func TestCallIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	for approve, want := range map[bool]int{true: exit.OK, false: exit.Failed} {
		p := pty.New(t)
		ended := d.onTerminal(t, p, nil, "call", "--events", "remove", "path=x")
		p.Expect(t, "allow? [y/n/a]", 1)
		asked := d.await(t, "asking")
		if err := d.Answer(wait.Context(t), asked.PendingInteractions[0].ID, api.Answer{Approve: approve}); err != nil {
			t.Error(err)
		}
		ended(want)
		p.Expect(t, "not answered", 1)
		if !p.Echoes(t) {
			t.Error("the terminal does not echo any more")
		}
	}
	d.idle(t)
}

// Ctrl-C aborts the call, which tells what it had done by then; a command that
// is killed leaves nothing running.
func TestCallIsInterrupted(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	p := pty.New(t)
	ended := d.onTerminal(t, p, nil, "call", "count")
	d.await(t, "running")
	p.Expect(t, "of 10m", 1)
	p.Type(t, "\x03")
	ended(exit.Aborted)
	p.Expect(t, "cancelled: count, ", 1)
	d.idle(t)

	cmd := exec.CommandContext(wait.Context(t), testBinary(t), asToolhost, "call", "--socket", d.socket, "count")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.await(t, "running")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	d.idle(t)
}

// Nobody has to wait for a daemon that hangs; it ends the call later.
func TestCallOfADaemonThatHangs(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	p := pty.New(t)
	ended := d.onTerminal(t, p, nil, "call", "count")
	d.await(t, "running")
	p.Expect(t, "of 10m", 1)
	if err := syscall.Kill(d.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(d.pid, syscall.SIGCONT) })
	wait.Until(t, "the daemon has stopped", func() bool { return stopped(d.pid) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended(exit.Aborted)
	}()
	for over := false; !over; { // signals that come too close together are one
		p.Type(t, "\x03")
		select {
		case <-done:
			over = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.Expect(t, "not waited for any longer", 1)
	if err := syscall.Kill(d.pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d.idle(t)
}

func TestTop(t *testing.T) {
	t.Parallel()
	d := serve(t, remoteTools)
	for name, test := range map[string]struct {
		env     []string
		key     string
		over    string
		colours bool
	}{
		"abort the call": {nil, "a", "aborting call evil", true},
		"abort the turn": {[]string{"NO_COLOR=1"}, "t", "aborting turn top-", false},
	} {
		ctx := wait.Context(t)
		id := "top-" + test.key
		if _, err := d.Begin(ctx, api.TurnSpec{TurnID: id, AgentID: "\x1b[31mevil\x1b[2J"}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := d.Run(ctx, id, []api.Call{{ID: "evil\x1b]0;title\x07\u202e", Tool: "count"}})
			done <- err
		}()
		d.await(t, "running")
		p := pty.New(t)
		cmd := exec.CommandContext(ctx, testBinary(t), asToolhost, "top")
		cmd.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR=", "TOOLHOST_SOCKET="+d.socket), test.env...)
		p.Attach(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.Expect(t, "count", 1)
		p.Expect(t, " of 10m", 1)
		p.Expect(t, "%", 1)  // of a CPU
		p.Expect(t, "iB", 1) // of memory
		p.Type(t, test.key)
		p.Expect(t, "nothing is chosen", 1)
		p.Type(t, "\x1b[A\x1b[B")
		p.Expect(t, ">   evil", 1)
		p.Type(t, test.key)
		p.Expect(t, test.over, 1)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := d.End(ctx, id); err != nil {
			t.Error(err)
		}
		p.Expect(t, "nothing runs", 1)
		p.Type(t, "q")
		if err := cmd.Wait(); err != nil || !p.Echoes(t) {
			t.Errorf("%s: top ended with %v, the terminal echoes: %t", name, err, p.Echoes(t))
		}
		p.Expect(t, "\x1b[?1049l", 1)
		checkScreen(t, p.Screen(), test.colours)
	}
}

// ownSequences are all that may be on the screen.
var ownSequences = regexp.MustCompile(`\x1b\[(H|K|J|\?1049[hl]|\?25[hl])`)

var ownColours = regexp.MustCompile(`\x1b\[(0|1|2|7|31|32|33|1;35)m`)

func checkScreen(t *testing.T, screen string, colours bool) {
	t.Helper()
	if got := ownColours.MatchString(screen); got != colours {
		t.Errorf("colours: %t, want %t", got, colours)
	}
	rest := ownColours.ReplaceAllString(ownSequences.ReplaceAllString(screen, ""), "")
	if strings.ContainsAny(rest, "\x1b\x07\u202e") {
		t.Errorf("the screen has control sequences of somebody else: %q", rest)
	}
	if !strings.Contains(screen, "\x1b[?1049h") {
		t.Error("the other screen was not used")
	}
}
