// Package test runs the Python tool through a real supervisor, as proof that
// docs/protocol.md is enough to write a tool by.
package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

const python = "/usr/bin/python3"

// tool is the path of the Python tool, on a machine that has what it needs.
func tool(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command(python, "-I", "-c", "import grpc, google.protobuf").CombinedOutput(); err != nil {
		problem := fmt.Sprintf("missing: python3-grpcio of Debian (apt-get install python3-grpcio): %v %s", err, out)
		if os.Getenv("CI") == "true" {
			t.Fatal(problem)
		}
		t.Skip(problem)
	}
	path, err := filepath.Abs("../outline")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func newHost(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir(), StoreDir: t.TempDir()})
	if err != nil && os.Geteuid() != 0 {
		t.Skipf("missing: root rights, or a cgroup delegated to this user: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return host
}

// request outlines path, which the call may read.
func request(tool, path string, timeout time.Duration) supervisor.Request {
	arguments, _ := json.Marshal(map[string]string{"path": path})
	return supervisor.Request{
		Tool: supervisor.Tool{Path: tool}, Arguments: arguments, Sandbox: &supervisor.Policy{Read: []string{path}},
		Meta: fmt.Appendf(nil, `{"dev.toolhost/timeoutMs":%d}`, timeout.Milliseconds()),
	}
}

const plenty = 2 * time.Minute

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const shapes = `import math

class Shape:
    def area(self, unit="m²"):
        def inner(): pass
        return 0

class Circle(Shape):
    async def draw(self, *, pen): pass

def main(): pass
`

const shapesOutline = `     3  class Shape
     4      def area(self, unit='m²')
     5          def inner()
     8  class Circle(Shape)
     9      def draw(self, *, pen)
    11  def main()
`

func TestOutlinesAFile(t *testing.T) {
	host, outline := newHost(t), tool(t)
	path := write(t, t.TempDir()+"/shapes.py", shapes)
	r := host.Call(t.Context(), request(outline, path, plenty))
	if r.Status != api.StatusOK || r.Text() != shapesOutline {
		t.Fatalf("status %s, message %s, stderr %s\n%s", r.Status, r.Message, r.Output.Stderr.Head, r.Text())
	}
	if want := `{"files": 1, "classes": 2, "functions": 4, "skipped": 0}`; string(r.Structured) != want {
		t.Errorf("structured %s, want %s", r.Structured, want)
	}
	if len(r.Sandbox.Enforced) == 0 || r.Sandbox.Network != "none" {
		t.Errorf("it ran without its sandbox: %+v", r.Sandbox)
	}
}

func TestFailuresAreToldInWords(t *testing.T) {
	host, outline := newHost(t), tool(t)
	dir := t.TempDir()
	for name, test := range map[string]struct {
		path, arguments string
		status          api.Status
		want            string
	}{
		"syntax":   {path: write(t, dir+"/bad.py", "def ("), status: api.StatusToolError, want: "SyntaxError"},
		"nul":      {path: write(t, dir+"/nul.py", "a\x00b"), status: api.StatusToolError, want: "null bytes"},
		"ungiven":  {path: dir, arguments: `{"path":"/root/x.py"}`, status: api.StatusToolError, want: "not granted"},
		"no path":  {path: dir, arguments: `{}`, status: api.StatusInvalidArgs, want: "path"},
		"too much": {path: dir, arguments: `{"path":"x","y":1}`, status: api.StatusInvalidArgs, want: "y"},
		"deep":     {path: write(t, dir+"/deep.py", strings.Repeat("(", 5000)), status: api.StatusToolError, want: "Error"},
	} {
		r := request(outline, test.path, plenty)
		if test.arguments != "" {
			r.Arguments = json.RawMessage(test.arguments)
		}
		got := host.Call(t.Context(), r)
		if got.Status != test.status || got.ToolError == nil || !strings.Contains(got.ToolError.Message, test.want) {
			t.Errorf("%s: status %s, error %+v; want %s with %q", name, got.Status, got.ToolError, test.status, test.want)
		}
	}
}

// One odd file does not end a folder, and no definition is too large for a message.
func TestOddFiles(t *testing.T) {
	host, outline := newHost(t), tool(t)
	dir := t.TempDir()
	var large strings.Builder
	large.WriteString("class Large:\n")
	for i := range 20_000 {
		fmt.Fprintf(&large, "    def m%d(self, %s): pass\n", i, strings.Repeat("a", 300))
	}
	write(t, dir+"/large.py", large.String())
	write(t, dir+"/odd.py", "def f(x="+strings.Repeat("1+", 900)+"1): pass\n")
	r := host.Call(t.Context(), request(outline, dir, plenty))
	if want := `{"files": 1, "classes": 1, "functions": 20000, "skipped": 1}`; r.Status != api.StatusOK || string(r.Structured) != want {
		t.Errorf("status %s, message %s, structured %s, want %s", r.Status, r.Message, r.Structured, want)
	}
}

// endless is a folder that takes minutes to outline.
func endless(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	first := write(t, dir+"/000000.py", strings.Repeat(shapes, 200))
	for i := range 10_000 {
		if err := os.Link(first, fmt.Sprintf("%s/%06d.py", dir, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTimeoutKeepsWhatIsThere(t *testing.T) {
	host, outline := newHost(t), tool(t)
	late := request(outline, endless(t), 6*time.Second)
	late.Grace = 30 * time.Second
	r := host.Call(t.Context(), late)
	if r.Status != api.StatusTimeout || !r.Partial || !strings.Contains(r.Text(), "class Circle(Shape)") {
		t.Fatalf("status %s, partial %v, message %s, stderr %s", r.Status, r.Partial, r.Message, r.Output.Stderr.Head)
	}
	if r.ToolError == nil || r.ToolError.Kind != "cancelled" || r.Kill.Stage != "term" {
		t.Errorf("it did not heed its deadline: error %+v, kill %+v", r.ToolError, r.Kill)
	}
}

// What was flushed before an abort is in the result, in whole files.
func TestAbortIsHeeded(t *testing.T) {
	host, outline := newHost(t), tool(t)
	ctx, cancel := context.WithTimeout(t.Context(), plenty)
	defer cancel()
	events := make(chan api.Event, 1024)
	request := request(outline, endless(t), plenty)
	request.Events, request.Grace = events, 30*time.Second
	call := host.Start(ctx, request)
	awaitSecondFile(t, ctx, events)
	call.Abort(api.ReasonUser)
	r := call.Result()
	if r.Status != api.StatusCancelled || r.ToolError == nil || r.ToolError.Kind != "cancelled" || r.Kill.Stage != "term" {
		t.Fatalf("status %s, error %+v, kill %+v", r.Status, r.ToolError, r.Kill)
	}
	if strings.Count(r.Text(), "def main()") < 200 {
		t.Errorf("the first file is not whole: %d bytes", len(r.Text()))
	}
}

// awaitSecondFile waits for progress that says that the first file is done.
func awaitSecondFile(t *testing.T, ctx context.Context, events <-chan api.Event) {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Kind == api.EventProgress && e.Fraction != nil && *e.Fraction > 0 {
				return
			}
		case <-ctx.Done():
			t.Fatal("no progress")
		}
	}
}
