package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// oldDeb and newDeb are two versions of the package, where `make service` puts
// them into the guest.
const (
	oldDeb = "/packages/old.deb"
	newDeb = "/packages/new.deb"
)

// someone has no rights, subordinate ids, and a service of their own.
const someone = "alice"

func needSystem(t *testing.T) {
	t.Helper()
	if os.Getenv(protocol.EnvSystem) != "1" {
		t.Skip("installs packages and starts services: needs a machine of its own (make service)")
	}
}

// run is a command that must succeed; it returns what it wrote to stdout.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(t, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// try is a command that may fail. The error has what it said.
func try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return finish(command(wait.Context(t), name, args...))
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = wait.Bound
	return cmd
}

func finish(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
	}
	return out.String(), nil
}

// result is what these tests look at in a call's result.
type result struct {
	Status  string
	Message string
	TurnID  string
	Partial bool
	Content []struct{ Text string }
	Output  struct{ Stdout struct{ Head string } }
	Kill    struct {
		Reaped, Survivors int
		Stage             string
	}
	Usage   struct{ OOMEvents, OOMKills int }
	Sandbox struct {
		Cgroup   string
		UID      int
		Enforced []string
		Degraded []struct{ Feature string }
	}
}

// degraded are the features that a call went without. Linux 6.1, which runs
// here, is older than Landlock's scopes.
func (r result) degraded() (list []string) {
	for _, d := range r.Sandbox.Degraded {
		if d.Feature != "landlockScope" {
			list = append(list, d.Feature)
		}
	}
	return list
}

// host is a way to have tools called: a daemon with its socket.
type host struct {
	name string
	// as is put before each command: who runs it.
	as []string
	// top is the cgroup in which all of the daemon's are.
	top string
}

var root = host{name: "root", top: "/sys/fs/cgroup/toolhost.slice/toolhost.service"}

func (h host) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	line := append(append([]string{}, h.as...), args...)
	return command(wait.Context(t), line[0], line[1:]...)
}

// toolhost is a command line that must succeed.
func (h host) toolhost(t *testing.T, args ...string) string {
	t.Helper()
	out, err := finish(h.command(t, append([]string{"toolhost"}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// call calls a tool through the daemon, however it ends.
func (h host) call(t *testing.T, args ...string) result {
	t.Helper()
	return h.begin(t, args...)()
}

// begin starts a call; what it returns waits for its result.
func (h host) begin(t *testing.T, args ...string) func() result {
	t.Helper()
	cmd := h.command(t, append([]string{"toolhost", "call", "--json"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (r result) {
		t.Helper()
		_ = cmd.Wait() // its exit status tells of the call
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: no result: %v\n%s%s", cmd.Args, err, out.String(), errs.String())
		}
		return r
	}
}

// abortAll ends all that runs.
func (h host) abortAll(t *testing.T) {
	t.Helper()
	var active struct{ Turns []struct{ TurnID string } }
	if err := json.Unmarshal([]byte(h.toolhost(t, "ps", "--json")), &active); err != nil {
		t.Fatal(err)
	}
	for _, turn := range active.Turns {
		h.toolhost(t, "abort", turn.TurnID)
	}
}

// want fails unless a call ended in a certain way, and left nothing.
func want(t *testing.T, r result, status string) {
	t.Helper()
	if r.Status != status || r.Kill.Survivors != 0 {
		t.Fatalf("status %s, survivors %d: %s; want %s and none", r.Status, r.Kill.Survivors, r.Message, status)
	}
}

// cgroupOf is the folder of a process's cgroup, given its folder in /proc.
func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	_, path, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/cgroup", pid)), "::")
	return "/sys/fs/cgroup" + path
}

func noneLeft(t *testing.T, word string) {
	t.Helper()
	if left := processes.WithArguments(word); len(left) > 0 {
		t.Errorf("%d processes with %s in their command lines are left: %d", len(left), word, left)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// property is one of a unit's.
func property(t *testing.T, unit, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "systemctl", "show", "--value", "--property="+name, unit))
}

func isState(t *testing.T, unit, state string) {
	t.Helper()
	if got := property(t, unit, "ActiveState"); got != state {
		t.Errorf("%s is %s, want %s\n%s", unit, got, state, run(t, "journalctl", "--no-pager", "--lines=20", "--output=cat", "--unit="+unit))
	}
}
