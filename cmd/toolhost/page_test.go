package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/supervisor"
)

func fitsThePage(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := present.Columns(strings.TrimSuffix(line, "\n")); n > present.PageColumns {
			t.Errorf("%s: a line of %d columns: %s", what, n, line)
		}
	}
}

// What ps prints fits a page, and ids of usual lengths stay whole.
func TestPsFitsThePage(t *testing.T) {
	for _, id := range []string{"mine", strings.Repeat("A", 26), strings.Repeat("C", 128)} {
		one := api.Turn{
			TurnID: id, CurrentTools: []api.CurrentTool{{CallID: id, Tool: strings.Repeat("tool_", 12), State: "running", StartedAt: time.Now(), TimeoutMs: 3_600_000, Usage: &api.CurrentUsage{MemoryBytes: 123 << 20}}},
			PendingInteractions: []api.Interaction{{CallID: id, Kind: "questionnaire", Prompt: strings.Repeat("Which one of them? ", 20)}},
		}
		var out strings.Builder
		if err := printTurns(&out, []api.Turn{one, {TurnID: id}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		fitsThePage(t, id, out.String())
		if len(id) <= 26 && strings.Count(out.String(), id) != 3 {
			t.Errorf("an id is broken:\n%s", out.String())
		}
		if !strings.Contains(out.String(), "questionnaire: Which one of them?") {
			t.Errorf("the question is broken:\n%s", out.String())
		}
	}
}

func TestExplainFitsThePage(t *testing.T) {
	long := "/" + strings.Repeat("folder/", 30)
	e := &supervisor.Explanation{
		Tool: "tool", Path: long, SHA256: strings.Repeat("0", 64), Warnings: []string{strings.Repeat("warning ", 30)},
	}
	e.Sandbox.Enforced = strings.Fields(strings.Repeat("landlock ", 30))
	var out strings.Builder
	if err := explainText(&out, e, "", []setting{{"read", long + " " + long, long + "toolhost.yaml:12:7", long}, {Name: "timeout", Value: "10s", From: "default"}}); err != nil {
		t.Fatal(err)
	}
	fitsThePage(t, "explain", out.String())
}

var twoDefaults = regexp.MustCompile(`\(default [^)]*\)\s+\(default`)

// Each command's help fits a page, tells each flag's default once, and tells the caps.
func TestHelpFitsThePage(t *testing.T) {
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		fitsThePage(t, cmd.CommandPath(), cmd.Long+"\n"+cmd.UsageString())
		if twice := twoDefaults.FindString(cmd.UsageString()); twice != "" {
			t.Errorf("%s: %s", cmd.CommandPath(), twice)
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(newRoot())
	help := strings.Join(strings.Fields(newExec().UsageString()), " ")
	for _, want := range []string{"at most 16 MiB a file, 64 MiB and 1000 names in all", "at most 30s", "at most 256MiB"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help of exec does not say %q", want)
		}
	}
}
