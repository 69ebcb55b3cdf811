package catalog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// describer plays the supervisor: what it describes goes by the last word of
// the arguments, or else the path.
type describer struct {
	mu    sync.Mutex
	asked []string
	tools map[string][]*pluginv1.ToolDescription
	// warnings are those of every description.
	warnings []string
}

func (d *describer) Describe(_ context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := filepath.Base(r.Tool.Path)
	if n := len(r.Tool.Args); n > 0 {
		key = r.Tool.Args[n-1]
	}
	d.asked = append(d.asked, key)
	if tools, ok := d.tools[key]; ok {
		return &supervisor.Description{Version: "1", SHA256: "abc", Tools: tools, Warnings: d.warnings}, nil
	}
	return nil, &api.Result{Status: api.StatusStartFailed, Message: "no such server"}
}

func tool(name string) *pluginv1.ToolDescription {
	return &pluginv1.ToolDescription{Name: name, InputSchema: []byte(`{"type":"object"}`)}
}

func load(t *testing.T, yaml string) (*config.Loaded, config.Machine) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"toolhost.yaml": yaml, "search": "#!", "two": "#!", "token": "s3cret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "toolhost.yaml")
	machine, err := config.ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: path, Machine: &machine})
	if err != nil {
		t.Fatal(err)
	}
	return loaded, machine
}

const example = `
secrets:
  token: {file: token}
tools:
  greet: {command: [echo, "hello {name}"], description: Greets.}
  search: {plugin: ./search, title: Find it, mode: ask, memory: 64MiB}
  two: {plugin: ./two, tool: second}
  files:
    mcp: [server, files]
    keep: true
    data: true
    secrets: {TOKEN: {secret: token}}
    tools:
      read_file: {readOnly: true}
      delete: {hidden: true}
`

func newCatalog(t *testing.T, yaml string, host *describer) *catalog.Catalog {
	t.Helper()
	loaded, machine := load(t, yaml)
	return catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
}

func described() *describer {
	return &describer{tools: map[string][]*pluginv1.ToolDescription{
		"search": {tool("grep")}, "two": {tool("first"), tool("second")},
		"files": {tool("read_file"), tool("write_file"), tool("delete")},
	}}
}

func TestAll(t *testing.T) {
	host := described()
	tools, problems := newCatalog(t, example, host).All(t.Context())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if tool.Description.GetName() != tool.Name || tool.Request.Name != tool.Name {
			t.Errorf("%s is described as %s, and requested as %s", tool.Name, tool.Description.GetName(), tool.Request.Name)
		}
	}
	if got := strings.Join(names, " "); got != "greet search two files__read_file files__write_file" {
		t.Errorf("tools %s", got)
	}
}

func TestFindDescribesNoMoreThanItMust(t *testing.T) {
	host := described()
	c := newCatalog(t, example, host)
	greet, err := c.Find(t.Context(), "greet")
	if err != nil || greet.Request.Command == nil || len(host.asked) != 0 {
		t.Errorf("greet: %v, asked %q", err, host.asked)
	}
	write, err := c.Find(t.Context(), "files__write_file")
	if err != nil || strings.Join(host.asked, " ") != "files" {
		t.Fatalf("write_file: %v, asked %q", err, host.asked)
	}
	if r := write.Request; r.Tool.Path != "/bin/toolhost" || r.Tool.Name != "write_file" || r.Keep == nil || r.Keep.Shared || !r.Tool.Adapter || !write.Exclusive {
		t.Errorf("request %+v, exclusive %v", r, write.Exclusive)
	}
	read, err := c.Find(t.Context(), "files__read_file")
	if err != nil || !read.Request.Keep.Shared || read.Exclusive || !read.Request.Tool.ReadOnly || len(host.asked) != 1 {
		t.Errorf("read_file: %v, %+v, asked %q", err, read.Tool, host.asked)
	}
}

func TestOperatorsWordCounts(t *testing.T) {
	c := newCatalog(t, example, described())
	search, err := c.Find(t.Context(), "search")
	if err != nil || search.Description.GetTitle() != "Find it" || search.Mode != "ask" || search.Request.Limits.MemoryBytes != 64<<20 {
		t.Errorf("%v: %+v", err, search)
	}
	two, err := c.Find(t.Context(), "two")
	if err != nil || two.Request.Tool.Name != "second" {
		t.Errorf("%v: %+v", err, two.Request.Tool)
	}
}

// Of a server's tools those run in parallel that the operator confirms and that
// do not say of themselves that they change things.
func TestAToolsOwnWordOnlyTightens(t *testing.T) {
	host := described()
	edit := tool("edit")
	edit.Concurrency = pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE
	host.tools["files"] = []*pluginv1.ToolDescription{tool("silent"), edit}
	for settings, want := range map[string][2]bool{ // exclusive: silent, edit
		"":                                  {true, true},
		"readOnly: true":                    {false, true},
		"readOnly: true, keep: true":        {false, true},
		"concurrency: parallel":             {false, false},
		"concurrency: exclusive":            {true, true},
		"tools: {silent: {readOnly: true}}": {false, true},
	} {
		c := newCatalog(t, "tools: {s: {mcp: [server, files], "+settings+"}}", host)
		for i, name := range []string{"s__silent", "s__edit"} {
			if got, err := c.Find(t.Context(), name); err != nil || got.Exclusive != want[i] {
				t.Errorf("%s with %q: exclusive %v (%v), want %v", name, settings, got.Exclusive, err, want[i])
			}
		}
	}
}

// A server gets the time for its start that its entry gives it, and its
// description some more, whichever of its tools it is for.
func TestStartTimeout(t *testing.T) {
	host := described()
	c := newCatalog(t, `
tools:
  slow: {mcp: [server, files], startTimeout: 20s, timeout: 3s, tools: {read_file: {mode: ask}}}
  plain: {mcp: [server, files]}
`, host)
	for name, want := range map[string]string{
		"slow__read_file": "adapter mcp --name slow --start-timeout 20s -- server files 22s", "slow__write_file": "adapter mcp --name slow --start-timeout 20s -- server files 22s",
		"plain__read_file": "adapter mcp --name plain -- server files 0s",
	} {
		found, err := c.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(append(found.Request.Tool.Args, found.Request.Tool.DescribeTimeout.String()), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestSecretsAndData(t *testing.T) {
	c := newCatalog(t, example, described())
	read, err := c.Find(t.Context(), "files__read_file")
	if err != nil {
		t.Fatal(err)
	}
	if s := read.Request.Secrets; len(s) != 1 || s[0].Value != "s3cret" || s[0].Variable != "TOKEN" {
		t.Errorf("secrets %v", s)
	}
	info, err := os.Stat(read.Request.Sandbox.Workspace)
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Base(read.Request.Sandbox.Workspace) != "files" {
		t.Errorf("workspace %q: %v", read.Request.Sandbox.Workspace, err)
	}
}

func TestNotFound(t *testing.T) {
	_, err := newCatalog(t, example, described()).Find(t.Context(), "nosuch")
	if _, ok := errors.AsType[*catalog.NotFoundError](err); !ok {
		t.Errorf("%v", err)
	}
	_, err = newCatalog(t, example, described()).Find(t.Context(), "files__delete")
	if _, ok := errors.AsType[*catalog.NotFoundError](err); !ok {
		t.Errorf("a hidden tool: %v", err)
	}
}

// Who mistypes a server's tool hears of the server and its tools.
func TestNotFoundOfAServer(t *testing.T) {
	host := described()
	for range 12 {
		host.tools["many"] = append(host.tools["many"], tool("t"+strings.Repeat("x", len(host.tools["many"]))))
	}
	c := newCatalog(t, "tools:\n  g: {mcp: [server, files]}\n  h: {mcp: [server, many]}\n", host)
	for name, want := range map[string]string{
		"g__read_fil": `toolhost.yaml:2) has no tool "g__read_fil": did you mean g__read_file?`,
		"g__nosuch":   `has no tool "g__nosuch": it has g__read_file, g__write_file, g__delete`,
		"h__nosuch":   ", h__txxxxxxxxx and 2 more, see toolhost tools",
		"nosuch":      `no tool "nosuch" is configured`,
	} {
		_, err := c.Find(t.Context(), name)
		if _, ok := errors.AsType[*catalog.NotFoundError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// One that cannot be described doesn't hide the others; nor do two of one name.
func TestProblems(t *testing.T) {
	c := newCatalog(t, `
tools:
  gone: {mcp: [server, gone]}
  a: {mcp: [server, files], prefix: x}
  b: {mcp: [server, files], prefix: x}
  several: {plugin: ./two}
  wrong: {plugin: ./two, tool: third}
`, described())
	tools, problems := c.All(t.Context())
	if len(tools) != 3 || len(problems) != 6 {
		t.Fatalf("%d tools, problems: %q", len(tools), problems)
	}
	all := errors.Join(problems...).Error()
	for _, want := range []string{"gone (", "no such server", "another prefix", "name one of", `no tool "third"`, "toolhost.yaml:3"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in: %s", want, all)
		}
	}
}

// A description that failed is tried again; one that did not is remembered.
func TestDescribedOnce(t *testing.T) {
	host := described()
	c := newCatalog(t, example, host)
	failing := newCatalog(t, "tools: {gone: {mcp: [server, gone]}}", host)
	for i := range 3 {
		if i == 0 {
			failing.All(t.Context()) // may take long where it fails: once only
		} else {
			_, _ = failing.Find(t.Context(), "gone__x")
		}
		if _, err := c.Find(t.Context(), "search"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(host.asked, " "); got != "gone search gone gone" {
		t.Errorf("asked %q", got)
	}
}

// sluggish takes its time to fail.
type sluggish struct {
	*describer
	takes time.Duration
}

func (s sluggish) Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	time.Sleep(s.takes)
	return s.describer.Describe(ctx, r)
}

// A list waits once for a tool that hangs, and not each time; who wants that tool
// tries it, and in the end the list does, too.
func TestWhatHangsIsLeftAlone(t *testing.T) {
	loaded, machine := load(t, "tools: {gone: {mcp: [server, gone]}}")
	synctest.Test(t, func(t *testing.T) {
		host := sluggish{described(), 5 * time.Second}
		c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
		tries := func(want int) {
			t.Helper()
			if _, problems := c.All(t.Context()); len(problems) != 1 || len(host.asked) != want {
				t.Errorf("%d tries, want %d; problems %v", len(host.asked), want, problems)
			}
		}
		tries(1)
		tries(1)
		_, _ = c.Find(t.Context(), "gone__x")
		tries(2)
		time.Sleep(51 * time.Second)
		host.tools["gone"] = nil
		if _, problems := c.All(t.Context()); len(problems) != 0 || len(host.asked) != 3 {
			t.Errorf("%d tries, problems %v", len(host.asked), problems)
		}
	})
}

// Known describes nothing; it tells of what has been, and of what has failed.
func TestKnown(t *testing.T) {
	host := described()
	c := newCatalog(t, example+"  gone: {mcp: [server, gone]}\n", host)
	if _, err := c.Known("search"); !errors.Is(err, catalog.ErrNotDescribed) || len(host.asked) > 0 {
		t.Errorf("before: %v, asked %q", err, host.asked)
	}
	if _, err := c.Known("nosuch"); err == nil || errors.Is(err, catalog.ErrNotDescribed) {
		t.Errorf("nosuch: %v", err)
	}
	for _, name := range []string{"search", "files__read_file", "gone__x"} {
		_, _ = c.Find(t.Context(), name)
	}
	asked := len(host.asked)
	if tool, err := c.Known("files__read_file"); err != nil || tool.Name != "files__read_file" {
		t.Errorf("after: %v, %+v", err, tool)
	}
	_, err := c.Known("gone__x")
	if _, failed := errors.AsType[*catalog.DescribeError](err); !failed || len(host.asked) != asked {
		t.Errorf("gone: %v, asked %q", err, host.asked)
	}
	if got := strings.Join(c.Described(), " "); got != "search files__read_file files__write_file" {
		t.Errorf("described %s", got)
	}
}

// patient describes once it may, and gives up with its caller.
type patient struct {
	*describer
	asked   chan struct{}
	mayMake chan struct{}
}

func (p *patient) Describe(ctx context.Context, r supervisor.Request) (*supervisor.Description, *api.Result) {
	p.asked <- struct{}{}
	select {
	case <-p.mayMake:
		return p.describer.Describe(ctx, r)
	case <-ctx.Done():
		return nil, &api.Result{Status: api.StatusCancelled, Message: "given up"}
	}
}

// Who waits for another's description doesn't share in that one's giving up.
func TestGivingUpIsNobodyElses(t *testing.T) {
	host := &patient{described(), make(chan struct{}, 2), make(chan struct{})}
	loaded, machine := load(t, example)
	c := catalog.New(host, loaded, catalog.Options{Adapter: "/bin/toolhost", State: t.TempDir(), Machine: machine})
	ctx, cancel := context.WithCancel(t.Context())
	var first, second error
	var both sync.WaitGroup
	both.Go(func() { _, first = c.Find(ctx, "search") })
	<-host.asked
	both.Go(func() { _, second = c.Find(t.Context(), "search") })
	cancel()
	<-host.asked
	close(host.mayMake)
	both.Wait()
	if first == nil || second != nil {
		t.Errorf("who gave up: %v; who did not: %v", first, second)
	}
}
