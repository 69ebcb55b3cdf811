package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// The test binary is the tools, too.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		serveTools()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == asClient {
		playClient(os.Args[2:])
	}
	goleak.VerifyTestMain(withHost{m}, goleak.Cleanup(func(code int) {
		if wasBuilt.Load() {
			dir, _ := built()
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// withHost are the tests, which share one host.
type withHost struct{ *testing.M }

func (w withHost) Run() int {
	dir, err := os.MkdirTemp("", "mcpserver-test-host-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	hostDir = dir
	code := w.M.Run()
	if !hostStarted.Load() {
		return code
	}
	host, err := startHost()
	if err == nil {
		err = host.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the host that the tests share:", err)
		return 1
	}
	return code
}

var (
	hostDir     string
	hostStarted atomic.Bool
	startHost   = sync.OnceValues(func() (*supervisor.Supervisor, error) {
		hostStarted.Store(true)
		return supervisor.New(context.Background(), supervisor.Config{RuntimeDir: hostDir, Admission: supervisor.Admission{Running: 16}})
	})
)

// describeSelf is what the test binary says of its tools, as the shared host has heard it.
var describeSelf = sync.OnceValues(func() (*supervisor.Description, error) {
	host, err := startHost()
	if err != nil {
		return nil, err
	}
	request, err := ownRequest()
	if err != nil {
		return nil, err
	}
	described, failed := host.Describe(context.Background(), request)
	if failed != nil {
		return nil, errors.New(failed.Message)
	}
	return described, nil
})

func ownRequest() (supervisor.Request, error) {
	self, err := os.Executable()
	return supervisor.Request{Tool: supervisor.Tool{Path: self}, Sandbox: &supervisor.Policy{}, Grace: 200 * time.Millisecond}, err
}

type arguments struct {
	Text string `json:"text,omitempty"`
	// Mark is what the processes of hang can be found by.
	Mark string `json:"mark,omitempty"`
}

type answer struct {
	Text string `json:"text"`
}

func serveTools() {
	plugin.Serve(
		plugin.NewTool(plugin.Tool{Name: "say", Title: "Say it", Description: "Says it.", ReadOnly: true}, func(_ context.Context, in arguments, out *plugin.Output) (answer, error) {
			return answer{in.Text}, out.Text(in.Text)
		}),
		plugin.NewTool(plugin.Tool{Name: "blocks", OpenWorld: true}, func(_ context.Context, _ arguments, out *plugin.Output) (plugin.None, error) {
			return plugin.None{}, errors.Join(out.Text("words"), out.JSON(map[string]int{"n": 1}), out.Blob("image/png", []byte("picture")),
				out.Blob("audio/wav", []byte("sound")), out.Blob("application/zip", []byte("files")), out.Link("https://example.org/", "example", "text/html"))
		}),
		plugin.NewTool(plugin.Tool{Name: "hang", Exclusive: true}, hang),
		plugin.NewTool(plugin.Tool{Name: "ask"}, ask),
		plugin.NewTool(plugin.Tool{Name: "wipe", Destructive: true}, func(_ context.Context, _ arguments, out *plugin.Output) (plugin.None, error) {
			return plugin.None{}, out.Text("wiped")
		}),
		plugin.NewTool(plugin.Tool{Name: "fail"}, func(context.Context, arguments, *plugin.Output) (answer, error) {
			return answer{}, errors.New("it does not work")
		}),
	)
}

// hang reports progress, has a child that ignores SIGTERM, and never ends.
func hang(_ context.Context, in arguments, out *plugin.Output) (plugin.None, error) {
	deaf := exec.Command("/bin/sh", "-c", `trap "" TERM; while :; do sleep 1; done`, in.Mark)
	if err := errors.Join(deaf.Start(), out.Text("begun\n"), out.Progress(0.5, "half")); err != nil {
		return plugin.None{}, err
	}
	select {}
}

func ask(ctx context.Context, in arguments, out *plugin.Output) (plugin.None, error) {
	var q plugin.Question
	if err := json.Unmarshal([]byte(in.Text), &q); err != nil {
		return plugin.None{}, err
	}
	if string(q.Schema) == "null" {
		q.Schema = nil
	}
	value, meta, err := out.AskBeside(ctx, q)
	if err == nil && len(meta) > 0 {
		err = out.Note("error", "asker", value, meta, "answered")
	}
	return plugin.None{}, errors.Join(err, out.Text("answer "+string(value)))
}

// setup is what tests change of a server.
type setup struct {
	Config
	// adjust has the last word on each tool.
	adjust func(*catalog.Tool)
	// journal keeps what happens; nil keeps nothing.
	journal turn.Journal
	// start, if not nil, takes the place of the host's.
	start func(hosts starter) starter
	// listing, if not nil, is what the list of tools waits for to be closed.
	listing chan struct{}
}

// newServer offers the test binary's tools.
func newServer(t testing.TB, with setup) *Server {
	t.Helper()
	host, err := startHost()
	if err != nil {
		t.Fatal(err)
	}
	offered := ownTools(t, with.adjust)
	config := with.Config
	config.Asker = NewAsker()
	start := turn.Supervised(host)
	if with.start != nil {
		start = with.start(start)
	}
	config.Turns = turn.New(turn.Config{Start: start, NoStatus: true, Interactor: config.Asker, Tool: offered.find, Journal: with.journal})
	config.Tools = func(ctx context.Context) ([]catalog.Tool, []error) {
		if with.listing != nil {
			select {
			case <-with.listing:
			case <-ctx.Done():
			}
		}
		return offered.list(), nil
	}
	config.Find = func(_ context.Context, name string) (catalog.Tool, error) {
		if i := slices.IndexFunc(offered.list(), func(t catalog.Tool) bool { return t.Name == name }); i >= 0 {
			return offered.list()[i], nil
		}
		return catalog.Tool{}, &catalog.NotFoundError{Name: name}
	}
	t.Cleanup(config.Turns.Close)
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	changeable.Store(s, offered)
	t.Cleanup(func() { changeable.Delete(s) })
	return s
}

// changeable are the tools of each test's server.
var changeable sync.Map

type offeredTools struct {
	mu    sync.Mutex
	tools []catalog.Tool
}

func (o *offeredTools) list() []catalog.Tool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]catalog.Tool{}, o.tools...)
}

func (o *offeredTools) find(name string) (turn.Tool, bool) {
	for _, t := range o.list() {
		if t.Name == name {
			return t.Tool, true
		}
	}
	return turn.Tool{}, false
}

// hide takes a tool out of the list.
func (o *offeredTools) hide(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var rest []catalog.Tool
	for _, t := range o.tools {
		if t.Name != name {
			rest = append(rest, t)
		}
	}
	o.tools = rest
}

func ownTools(t testing.TB, adjust func(*catalog.Tool)) *offeredTools {
	t.Helper()
	described, err := describeSelf()
	if err != nil {
		t.Fatal(err)
	}
	o := &offeredTools{}
	for _, shared := range described.Tools {
		one, err := ownRequest()
		if err != nil {
			t.Fatal(err)
		}
		d := proto.CloneOf(shared)
		one.Tool.Name, one.Name = d.GetName(), d.GetName()
		tool := catalog.Tool{Tool: turn.Tool{Name: d.GetName(), Request: one, Destructive: d.GetAnnotations().GetDestructive(), Exclusive: d.GetName() == "hang"}, Description: d}
		if adjust != nil {
			adjust(&tool)
		}
		o.tools = append(o.tools, tool)
	}
	return o
}

// newest is a version that has all kinds of blocks.
const newest = multiRound

// kind is how a client speaks with the server.
type kind struct {
	name, version string
	http          bool
}

// kinds are both generations of the protocol, over both kinds of transports.
var kinds = []kind{
	{"2025 in memory", "2025-11-25", false},
	{"2026 in memory", "2026-07-28", false},
	{"2025 over HTTP", "2025-11-25", true},
	{"2026 over HTTP", "2026-07-28", true},
}

func ofEachKind(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// connect gives a client of the server.
func connect(t testing.TB, s *Server, k kind, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	t.Helper()
	return attach(t, s, k, mcpsdk.NewClient(&mcpsdk.Implementation{Name: "tester", Version: "1"}, o))
}

// attach connects a client of the test's own.
func attach(t testing.TB, s *Server, k kind, client *mcpsdk.Client) *mcpsdk.ClientSession {
	t.Helper()
	if k.http {
		return attachTo(t, overHTTP(t, s), k, client)
	}
	ours, theirs := mcpsdk.NewInMemoryTransports()
	ss, err := s.sdk.Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	return attachTo(t, theirs, k, client)
}

// overHTTP serves on loopback for a test.
func overHTTP(t testing.TB, s *Server) *mcpsdk.StreamableClientTransport {
	t.Helper()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &mcpsdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: client, MaxRetries: -1}
}

func connectTo(t testing.TB, transport mcpsdk.Transport, k kind, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	t.Helper()
	return attachTo(t, transport, k, mcpsdk.NewClient(&mcpsdk.Implementation{Name: "tester", Version: "1"}, o))
}

func attachTo(t testing.TB, transport mcpsdk.Transport, k kind, client *mcpsdk.Client) *mcpsdk.ClientSession {
	t.Helper()
	session, err := client.Connect(wait.Context(t), transport, &mcpsdk.ClientSessionOptions{ProtocolVersion: k.version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != k.version {
		t.Fatalf("version %s, want %s", got, k.version)
	}
	return session
}

func params(tool string, in arguments) *mcpsdk.CallToolParams {
	return &mcpsdk.CallToolParams{Name: tool, Arguments: in}
}

func invoke(t testing.TB, c *mcpsdk.ClientSession, p *mcpsdk.CallToolParams) *mcpsdk.CallToolResult {
	t.Helper()
	r, err := c.CallTool(wait.Context(t), p)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return r
}

// text is all that a model reads of a result.
func text(r *mcpsdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if one, ok := c.(*mcpsdk.TextContent); ok {
			all = append(all, one.Text)
		}
	}
	return strings.Join(all, "\n")
}

// execution is toolhost's own result in one of MCP.
func execution(t testing.TB, r *mcpsdk.CallToolResult) (own api.Result) {
	t.Helper()
	raw, err := json.Marshal(r.Meta[executionKey])
	if err != nil || json.Unmarshal(raw, &own) != nil || own.SchemaVersion != api.SchemaVersion {
		t.Fatalf("no result of toolhost's own in %s", raw)
	}
	return own
}

func newMark() string { return "mcpserver-test-" + rand.Text() }

// alive says whether a process with the mark is there.
func alive(mark string) bool { return len(processes.WithArguments(mark)) > 0 }

func waitGone(t testing.TB, mark string) {
	t.Helper()
	wait.Until(t, "the processes are gone", func() bool { return !alive(mark) })
}

func waitAlive(t testing.TB, mark string) {
	t.Helper()
	wait.Until(t, "the tool runs", func() bool { return alive(mark) })
}
