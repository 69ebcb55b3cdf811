package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

// deadTurn leaves a turn without an end in a journal of commands.
func deadTurn(t *testing.T, dir string) (own string) {
	t.Helper()
	return recorded(t, dir, api.Event{Kind: api.EventTurnStart, TurnID: "dead", Seq: 1, Time: time.Now()})
}

// recorded leaves events in a journal of commands.
func recorded(t *testing.T, dir string, events ...api.Event) (own string) {
	t.Helper()
	j, err := state.Claim(dir, journal.Options{Retention: journal.Retention{MaxAge: -1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		raw, err := json.Marshal(e)
		if err == nil {
			err = journal.Turns{Journal: j}.Append(turn.Record{Record: api.Record{Event: e, JSON: raw}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.Dir()
}

// The configuration says how long turns are kept, also of a folder that a flag names.
func TestPruneKeepsWhatIsConfigured(t *testing.T) {
	t.Parallel()
	dir, file, old := t.TempDir(), filepath.Join(t.TempDir(), "toolhost.yaml"), time.Now().Add(-800*time.Hour)
	if err := os.WriteFile(file, []byte("journal: {maxAge: infinite}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded(t, dir, api.Event{Kind: api.EventTurnStart, TurnID: "old", Seq: 1, Time: old}, api.Event{Kind: api.EventTurnEnd, TurnID: "old", Seq: 2, Time: old})
	for _, c := range []struct{ config, want string }{{file, "dropped 0 turns\n"}, {os.DevNull, "dropped 1 turns\n"}} {
		if got := string(toolhost(t, "log", "prune", "--state", dir, "--config", c.config)); got != c.want {
			t.Errorf("with %s toolhost says %q, want %q", c.config, got, c.want)
		}
	}
}

// Whoever opens a journal says, once, what became of it before, quiet or not.
func TestWhatWasFoundInTheJournalIsTold(t *testing.T) {
	t.Parallel()
	batch := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(batch, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	const dead, damaged = "turns that died with their host: 1 in ", "was damaged ("
	for name, args := range map[string][]string{"turn": {"turn", "--quiet", batch}, "prune": {"log", "prune"}} {
		dir := t.TempDir()
		own := deadTurn(t, dir)
		args = append(args, "--state", dir)
		expectStderr(t, name, args, dead+own+", closed now; toolhost log shows them\n")
		expectStderr(t, name, args)
		if err := os.WriteFile(filepath.Join(own, journal.DatabaseName), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		expectStderr(t, name, args, "the journal in "+own+" "+damaged, "it was moved to "+own+"/journal.db.corrupt-", "and a new one begun\n")
		expectStderr(t, name, args)
	}
}

// A configuration that is named counts more than the daemon of the environment.
func TestLogOfANamedConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deadTurn(t, dir)
	file := filepath.Join(t.TempDir(), "toolhost.yaml")
	if err := os.WriteFile(file, []byte("state: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(wait.Context(t), testBinary(t), asToolhost, "log", "--config", file)
	cmd.Env = append(os.Environ(), state.Variable+"=", socketVariable+"="+filepath.Join(dir, "none.sock"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "dead ") {
		t.Errorf("%v: %s", err, out)
	}
}

// A journal that is in use is told with what can be done: of a command there is no daemon to stop.
func TestJournalsInUse(t *testing.T) {
	t.Parallel()
	command := filepath.Join("/state", "commands", "1")
	for dir, want := range map[string]string{"/state": "stop the daemon first", command: "wait for the command that runs"} {
		if err := ownedError("/state", []string{dir}); err == nil || !strings.Contains(err.Error(), dir+" is in use and was not pruned: "+want) {
			t.Errorf("%v", err)
		}
	}
	if err := ownedError("/state", nil); err != nil {
		t.Error(err)
	}
}

// expectStderr runs toolhost, which says all of the parts, in one line, or nothing.
func expectStderr(t *testing.T, name string, args []string, parts ...string) {
	t.Helper()
	cmd := exec.CommandContext(wait.Context(t), testBinary(t), append([]string{asToolhost}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.String())
	}
	said := stderr.String()
	if strings.Count(said, "\n") != min(1, len(parts)) {
		t.Errorf("%s says %q, want %q", name, said, parts)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("%s says %q, want %q", name, said, part)
		}
	}
}
