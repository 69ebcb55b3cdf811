package mcpserver

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// What a newcomer types works: the inspector over stdio, and over HTTP with a
// daemon.
func TestDocumentedInspector(t *testing.T) {
	t.Parallel()
	stage.Of(t, "interop")
	home, bin := t.TempDir(), toolhostFolder(t)
	yaml := strings.ReplaceAll(blocks(t, "yaml")[0], "/home/me", home)
	if err := os.WriteFile(filepath.Join(home, "toolhost.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state")
	address := freeAddress(t)
	typed := strings.Join(blocks(t, "sh"), "")
	for was, is := range map[string]string{"/home/me": home, "127.0.0.1:7070": address, "~/.local/state/toolhost": state} {
		if !strings.Contains(typed, was) {
			t.Fatalf("no %s in the document", was)
		}
		typed = strings.ReplaceAll(typed, was, is)
	}
	before, rest, _ := strings.Cut(typed, "toolhost serve ")
	serve, after, found := strings.Cut(rest, " &\n")
	if !found {
		t.Fatal("the document starts no daemon")
	}
	environment := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "TOOLHOST_STATE="+state)
	startDaemon(t, address, environment, append(strings.Fields(serve), "--socket", filepath.Join(home, "s")))

	cli := filepath.Join(npm.Folder(t, "testdata"), "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	shell := exec.CommandContext(wait.Context(t), "sh", "-ec", `npx() { shift; node "$CLI" "$@"; }`+"\n"+before+after)
	shell.Dir, shell.Env = home, append(environment, "CLI="+cli)
	out, err := shell.CombinedOutput()
	if err != nil || strings.Count(string(out), "hello Ada\\n") != 2 || !strings.Contains(string(out), "Lists the notes.") {
		t.Errorf("%v: %s", err, out)
	}
}

func toolhostFolder(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// freeAddress is one that nobody listens at for the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startDaemon(t *testing.T, address string, environment, args []string) {
	t.Helper()
	daemon := exec.Command(filepath.Join(toolhostFolder(t), "toolhost"), append([]string{"serve"}, args...)...)
	daemon.Env, daemon.Stderr = environment, os.Stderr
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(os.Interrupt)
		if err := daemon.Wait(); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	wait.Until(t, "the daemon answers", func() bool {
		r, err := client.Get("http://" + address + "/api/health")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}
