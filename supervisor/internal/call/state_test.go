package call

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// needsDocs leaves a test out in the VM, which has no source tree.
func needsDocs(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("the guest has no source tree: this test is the host's")
	}
}

// diagram renders the transition table as a Mermaid state diagram.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> queued\n")
	for s := stateQueued; s <= stateDone; s++ {
		targets := map[state][]string{}
		for t := admitted; t < triggerCount; t++ {
			if to, ok := next(s, t); ok {
				targets[to] = append(targets[to], t.String())
			}
		}
		for to := stateQueued; to <= stateDone; to++ {
			if names := targets[to]; names != nil {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, strings.Join(names, ", "))
			}
		}
	}
	b.WriteString("    done --> [*]\n")
	return b.String()
}

// The diagram in the documentation is the table itself.
func TestDiagramInDocs(t *testing.T) {
	needsDocs(t)
	const path, open, end = "../../../docs/architecture.md", "```mermaid\n", "```"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	before, rest, ok := strings.Cut(doc, open)
	if !ok {
		t.Fatalf("%s has no mermaid block", path)
	}
	old, after, _ := strings.Cut(rest, end)
	if old == diagram() {
		return
	}
	if !*update {
		t.Fatalf("the diagram in %s is not the table's: run go test ./supervisor/internal/call -run Diagram -update", path)
	}
	if err := os.WriteFile(path, []byte(before+open+diagram()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Authors go by what the protocol's page says of waiting.
func TestWaitsInDocs(t *testing.T) {
	needsDocs(t)
	raw, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	wait := fmt.Sprintf("%g s", meetTime.Seconds())
	for _, says := range []string{
		"the host waits for " + wait + " after the result", "the stream is read on for " + wait, "lost while the process lives on for " + wait,
		fmt.Sprintf("more than %d answers", maxReplies),
	} {
		if !strings.Contains(string(raw), says) {
			t.Errorf("docs/protocol.md does not say %q", says)
		}
	}
}

func TestTableIsComplete(t *testing.T) {
	if len(triggerNames) != int(triggerCount) || len(stateNames) != int(stateDone)+1 {
		t.Fatalf("%d trigger names for %d triggers, %d state names for %d states", len(triggerNames), triggerCount, len(stateNames), stateDone+1)
	}
	used := map[trigger]bool{}
	for _, row := range transitions {
		for trig := range row {
			used[trig] = true
		}
	}
	for trig := admitted; trig < triggerCount; trig++ {
		if !used[trig] {
			t.Errorf("nothing is triggered by %s", trig)
		}
	}
}

// A call always moves on: no transition leads back, so it ends after at most
// as many as there are states, and only done is final.
func TestTableOnlyMovesOn(t *testing.T) {
	for s := stateQueued; s < stateDone; s++ {
		if len(transitions[s]) == 0 {
			t.Errorf("%s has no way out", s)
		}
		for trig, to := range transitions[s] {
			if to <= s {
				t.Errorf("%s leads from %s back to %s", trig, s, to)
			}
		}
	}
	if len(transitions[stateDone]) != 0 {
		t.Error("done is not final")
	}
}

// Whatever happens in whatever order, from queued every call can still end.
func TestTableFromEveryStateToDone(t *testing.T) {
	for s := stateQueued; s <= stateDone; s++ {
		seen := []state{s}
		for i := 0; i < len(seen); i++ {
			for _, to := range transitions[seen[i]] {
				if !slices.Contains(seen, to) {
					seen = append(seen, to)
				}
			}
		}
		if !slices.Contains(seen, stateDone) {
			t.Errorf("done cannot be reached from %s", s)
		}
	}
}
