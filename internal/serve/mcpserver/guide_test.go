package mcpserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const guidePath = "../../../docs/first-tool.md"

// guide writes the files of the guide, with its paths for those of a folder.
func guide(t *testing.T) (dir string, of func(language string) []string) {
	t.Helper()
	dir = t.TempDir()
	of = func(language string) []string {
		var list []string
		for _, text := range blocksOf(t, guidePath, language) {
			list = append(list, strings.ReplaceAll(text, "/home/me/my-tools", dir))
		}
		return list
	}
	for name, text := range map[string]string{"count.py": of("python")[0], "agent.py": of("python")[1], "toolhost.yaml": of("yaml")[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, of
}

// inGuide runs a command there, with the toolhost under test.
func inGuide(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TOOLHOST_STATE=none"), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// The guide's commands print what it says.
func TestTheGuidesCommands(t *testing.T) {
	t.Parallel()
	dir, of := guide(t)
	out := inGuide(t, dir, nil, "sh", "-euc", of("sh")[0])
	if !strings.Contains(out, "\n6 words, 18 characters\n") || !strings.Contains(out, "toolhost.yaml") {
		t.Errorf("%s", out)
	}
}

// The guide's clients are given the tool.
func TestTheGuidesClients(t *testing.T) {
	t.Parallel()
	dir, of := guide(t)
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	clients := of("json")
	if len(clients) != 2 {
		t.Fatalf("%d clients", len(clients))
	}
	for _, client := range clients {
		var hosts struct {
			Servers map[string]server `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(client), &hosts); err != nil {
			t.Fatal(err)
		}
		one := hosts.Servers["toolhost"]
		cmd := exec.Command(filepath.Join(bin, one.Command), one.Args...)
		cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append(os.Environ(), "TOOLHOST_STATE="+filepath.Join(dir, "state")), os.Stderr
		c := connectTo(t, &mcpsdk.CommandTransport{Command: cmd}, kinds[0], nil)
		r := invoke(t, c, &mcpsdk.CallToolParams{Name: "count_words", Arguments: map[string]any{"text": "to be or not to be"}})
		if r.IsError || text(r) != "6 words, 18 characters\n" {
			t.Errorf("%s", text(r))
		}
	}
}

// The guide's agent calls the tool that a model asks for, and tells it the
// result.
func TestTheGuidesAgent(t *testing.T) {
	t.Parallel()
	dir, _ := guide(t)
	var requests []string
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, string(body))
		answer := `{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"It has six."}]}`
		if len(requests) == 1 {
			answer = `{"role":"assistant","stop_reason":"tool_use","content":[{"type":"tool_use","id":"toolu_1","name":"count_words","input":{"text":"to be or not to be"}}]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer model.Close()
	env := []string{"ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=secret", "MODEL=m"}
	if out := inGuide(t, dir, env, "python3", "agent.py", "How many words?"); out != "It has six.\n" {
		t.Errorf("%q", out)
	}
	if len(requests) != 2 || !strings.Contains(requests[0], `"count_words"`) || !strings.Contains(requests[1], `6 words, 18 characters`) {
		t.Errorf("%q", requests)
	}
}
