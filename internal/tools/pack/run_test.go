package pack

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// TestMain lets the test binary play the packed tool.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "reader"}, read))
		return
	}
	os.Exit(m.Run())
}

type readInput struct {
	File string `json:"file"`
}

func read(_ context.Context, in readInput, out *plugin.Output) (plugin.None, error) {
	raw, err := os.ReadFile(in.File)
	if err != nil {
		return plugin.None{}, err
	}
	return plugin.None{}, out.Text(string(raw))
}

// A pack's binary runs in the sandbox, with the files that came with it, and
// only as the bytes that were compared.
func TestAPackRuns(t *testing.T) {
	source := tree(t, map[string]string{"data/words": "a b c"})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "reader"), raw, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := Open(save(t, tarOf(t, mustCollect(t, Spec{Source: source}))))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	host, err := supervisor.New(t.Context(), supervisor.Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	arguments, _ := json.Marshal(readInput{filepath.Join(o.Dir, "data/words")})
	request := supervisor.Request{
		Tool: supervisor.Tool{Path: o.Binary}, SHA256: o.SHA256, Arguments: arguments,
		Sandbox: &supervisor.Policy{Read: []string{o.Dir}, Allow: []string{sandbox.SharedUID}},
	}
	if r := host.Call(t.Context(), request); !r.OK() || r.Text() != "a b c" || r.SHA256 != o.SHA256 {
		t.Errorf("%s, text %q, sha256 %s: %s", r.Status, r.Text(), r.SHA256, r.Message)
	}
	if err := os.WriteFile(o.Binary, append(raw, 'x'), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := host.Call(t.Context(), request); r.Status != api.StatusPolicyViolation {
		t.Errorf("changed after it was opened: %s", r.Status)
	}
}
