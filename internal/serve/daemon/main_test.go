package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/plugin"
)

// asDaemon in the environment makes the test binary a daemon; it holds that
// daemon's settings as JSON.
const asDaemon = "TOOLHOST_TEST_DAEMON"

// The test binary is the daemon and the tools.
func TestMain(m *testing.M) {
	switch settings := os.Getenv(asDaemon); {
	case os.Getenv("TOOLHOST_PLUGIN") != "":
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "work"}, work))
	case settings != "":
		os.Exit(playDaemon(settings))
	case os.Getenv(asGreedy) != "":
		os.Exit(playGreedy(os.Getenv(asGreedy)))
	default:
		os.Exit(m.Run())
	}
}

// work is what the tool is told to do.
type workArgs struct {
	// Text is sent at once, and Repeat times more. For is a file to wait for.
	Text   string `json:"text,omitempty"`
	Repeat int    `json:"repeat,omitempty"`
	For    string `json:"for,omitempty"`
	// Deaf: it never ends, nor hears SIGTERM.
	Deaf bool `json:"deaf,omitempty"`
	// Memory is how many MiB it takes.
	Memory int `json:"memory,omitempty"`
	// Variables of its environment are told.
	Variables bool `json:"variables,omitempty"`
}

func work(ctx context.Context, in workArgs, out *plugin.Output) (struct{}, error) {
	if in.Deaf {
		signal.Ignore(syscall.SIGTERM)
	}
	if err := out.Text(in.Text); err != nil {
		return struct{}{}, err
	}
	for range in.Repeat {
		if err := out.Text(in.Text); err != nil {
			return struct{}{}, err
		}
	}
	taken := make([]byte, in.Memory<<20)
	for i := 0; i < len(taken); i += os.Getpagesize() {
		taken[i] = 1
	}
	if in.Variables {
		_ = out.Text(strings.Join(os.Environ(), "\n"))
	}
	for in.Deaf {
		select {}
	}
	for in.For != "" {
		if _, err := os.Stat(in.For); err == nil {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		}
	}
	return struct{}{}, nil
}

// settings of a daemon under test.
type settings struct{ Config, State, Socket, Listen string }

func playDaemon(raw string) int {
	var s settings
	_ = json.Unmarshal([]byte(raw), &s)
	_ = os.Unsetenv(asDaemon)
	machine, _ := config.ThisMachine()
	var flags []config.Flag
	for key, value := range map[string]string{"socket.path": s.Socket, "listen": s.Listen} {
		if value != "" {
			flags = append(flags, config.Flag{Key: key, Values: []string{value}, Name: "--" + key})
		}
	}
	self, _ := os.Executable()
	signals, reloads := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	signal.Notify(reloads, syscall.SIGHUP)
	o := Options{
		State: s.State, Machine: machine, Adapter: self, Signals: signals, Reloads: reloads, Version: "test",
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr}),
		Load: func() (*config.Loaded, error) {
			return config.Load(config.Options{Path: s.Config, Machine: &machine, Flags: flags})
		},
	}
	var err error
	if o.Loaded, err = o.Load(); err == nil {
		err = Run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// world is where one daemon after the other runs.
type world struct {
	t    *testing.T
	dir  string
	mark string // in the environment of all its tools
	settings
	client *client.Client
}

// configText is a configuration with the tool work, and what is added to it.
func (w *world) configText(added string) string {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("classes: {all: {read: [%s], env: {TOOLHOST_MARK: %s}}}\ntools:\n  work: {plugin: %s, class: all}\n  lines: {command: [echo, \"{text}\"], class: all}\n%s", w.dir, w.mark, self, added)
}

func (w *world) configure(added string) {
	w.t.Helper()
	if err := os.WriteFile(w.Config, []byte(w.configText(added)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func newWorld(t *testing.T, added string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "thd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, mark: filepath.Base(dir), settings: settings{
		Config: filepath.Join(dir, "toolhost.yaml"), State: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "s"),
	}}
	w.configure(added)
	if w.client, err = client.New(client.Options{Socket: w.Socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	return w
}

// process is one daemon.
type process struct {
	*world
	cmd    *exec.Cmd
	log    *logged
	exited chan struct{} // closed when it has; then cmd.ProcessState tells how
}

// command is that of a daemon, not yet started.
func (w *world) command() *process {
	w.t.Helper()
	raw, err := json.Marshal(w.settings)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{world: w, cmd: exec.Command(os.Args[0]), log: &logged{}, exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), asDaemon+"="+string(raw)), p.log
	return p
}

func (p *process) start() *process {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if p.t.Failed() {
			p.t.Logf("log of daemon %d:\n%s", p.cmd.Process.Pid, p.log.text())
		}
	})
	return p
}

// daemon starts one and waits until it can be used.
func (w *world) daemon() *process {
	w.t.Helper()
	p := w.command().start()
	p.waitReady()
	return p
}

func (p *process) waitReady() {
	p.t.Helper()
	wait.Until(p.t, "the daemon takes calls", func() bool {
		select {
		case <-p.exited:
			p.t.Fatalf("the daemon has ended: %s", p.log.text())
		default:
		}
		return p.client.Ready(p.t.Context()) == nil
	})
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// code is the exit status.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-wait.Context(p.t).Done():
		p.t.Fatalf("the daemon does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// waitLog waits for a line.
func (p *process) waitLog(text string) {
	p.t.Helper()
	wait.Until(p.t, "the log says "+text, func() bool { return strings.Contains(p.log.text(), text) })
}

// logged is a log that can be read while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func arguments(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (w *world) begin() string {
	w.t.Helper()
	begun, err := w.client.Begin(wait.Context(w.t), api.TurnSpec{Headless: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return begun.TurnID
}

// outcome is what became of a batch of one call.
type outcome struct {
	result *api.Result
	err    error
}

func (w *world) run(turnID string, c api.Call) outcome {
	results, err := w.client.Run(context.WithoutCancel(w.t.Context()), turnID, []api.Call{c})
	if err != nil || len(results) != 1 {
		return outcome{err: fmt.Errorf("%d results: %w", len(results), err)}
	}
	return outcome{result: results[0]}
}

func (w *world) mustRun(turnID, tool string, v any) *api.Result {
	w.t.Helper()
	o := w.run(turnID, api.Call{ID: "c", Tool: tool, Arguments: arguments(w.t, v)})
	if o.err != nil || !o.result.OK() {
		w.t.Fatalf("%v: %+v", o.err, o.result)
	}
	return o.result
}

// launch begins a call and returns once it runs and has said something.
func (w *world) launch(turnID, tool string, in workArgs) <-chan outcome {
	w.t.Helper()
	in.Text = "begun"
	done := make(chan outcome, 1)
	call := api.Call{ID: "launched", Tool: tool, Arguments: arguments(w.t, in)}
	go func() { done <- w.run(turnID, call) }()
	err := w.client.Watch(wait.Context(w.t), turnID, 0, func(e api.Record) bool { return e.Kind != api.EventOutput })
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func (w *world) outcome(done <-chan outcome) outcome {
	w.t.Helper()
	select {
	case o := <-done:
		return o
	case <-wait.Context(w.t).Done():
		w.t.Fatal("the call does not end")
		return outcome{}
	}
}

// left counts the processes of the world's tools.
func (w *world) left() int { return len(processes.WithEnvironment("TOOLHOST_MARK=" + w.mark)) }

// letGo makes the file that a call waits for.
func (w *world) letGo(path string) {
	w.t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// saidBy is all text of a result.
func saidBy(r *api.Result) (text string) {
	for _, c := range r.Content {
		text += c.Text
	}
	return text
}
