package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

func newExplain() *cobra.Command {
	var flags callFlags
	cmd := &cobra.Command{
		Use: "explain [flags] TOOL", Short: "Say what a tool would be granted, where that comes from, and what it wished for",
		Long: `Say what a tool would be granted, where each value comes from, and what the tool
wished for beside it. It takes the flags of run and runs nothing but the tool's
own description of itself.`,
		Example: "  toolhost explain --read . --timeout 5s ./bin/search",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.OutOrStdout(), &flags, args[0])
		},
	}
	flags.register(cmd)
	return cmd
}

func explain(w io.Writer, flags *callFlags, tool string) error {
	request, err := flags.request()
	if err != nil {
		return err
	}
	request.Tool = splitTool(tool)
	host, err := newHost(flags)
	if err != nil {
		return err
	}
	defer host.Close()
	e, err := host.Explain(context.Background(), request)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	settings := flags.settings(e)
	if flags.json {
		return explainJSON(w, e, settings)
	}
	return explainText(w, e, settings)
}

// setting is one thing that is in force for a call.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// From is the layer that decided, and where it stands.
	From string `json:"from"`
	// Wished is what the tool would like; empty if it said nothing.
	Wished string `json:"wished,omitempty"`
}

func (f *callFlags) settings(e *supervisor.Explanation) []setting {
	wish, hints := e.Description.GetWish(), e.Description.GetTimeouts()
	from := func(flag string) string {
		if f.set(flag) {
			return "--" + flag
		}
		return "default"
	}
	return []setting{
		{"timeout", duration(e.Timeout.Timeout), timeoutSource(e.Timeout), milliseconds(hints.GetTimeoutMs())},
		{"soft budget", duration(e.Timeout.SoftBudget), from("soft"), milliseconds(hints.GetSoftBudgetMs())},
		{"grace", duration(e.Grace), from("grace"), ""},
		{"memory", cmp.Or(size(e.Limits.MemoryBytes), "unlimited"), from("memory"), size(wish.GetMemoryBytes())},
		{"pids", cmp.Or(number(e.Limits.Pids), "unlimited"), from("pids"), number(wish.GetPids())},
		{"cpu", percent(e.Limits.CPUPercent), from("cpu"), ""},
		{"output kept", size(e.Limits.OutputBytes), from("output"), ""},
		{"network", e.Sandbox.Network, from("net"), wishedNetwork(wish)},
		{"read", paths(e.Sandbox.Read), from("read"), strings.Join(wish.GetRead(), " ")},
		{"write", paths(e.Sandbox.Write), from("write"), strings.Join(wish.GetWrite(), " ")},
		{"working dir", e.Dir, "where the call starts", ""},
		{"sandbox", e.Sandbox.Tier, tierSource(f), ""},
	}
}

func timeoutSource(r budget.Resolution) string {
	source := string(r.Source)
	if r.SourceDetail != "" {
		source += " (" + r.SourceDetail + ")"
	}
	if r.Clamped {
		source += fmt.Sprintf(", clamped to %s..%s", r.Min, duration(r.Max))
	}
	return source
}

func tierSource(f *callFlags) string {
	if f.unsafe {
		return "--unsafe-no-sandbox"
	}
	return "default"
}

func explainJSON(w io.Writer, e *supervisor.Explanation, settings []setting) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(struct {
		*supervisor.Explanation
		Settings []setting `json:"settings"`
		Claims   []string  `json:"claims"`
	}{e, settings, claimsOf(e.Description)})
}

func explainText(w io.Writer, e *supervisor.Explanation, settings []setting) error {
	fmt.Fprintf(w, "%s\n%s\nsha256 %s\n\n", oneLine(e.Tool), oneLine(e.Path), e.SHA256)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tIN FORCE\tFROM\tTHE TOOL WISHED")
	for _, s := range settings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, oneLine(s.Value), s.From, oneLine(s.Wished))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nenforced  %s\n", strings.Join(e.Sandbox.Enforced, ", "))
	for _, d := range e.Sandbox.Degraded {
		fmt.Fprintf(w, "degraded  %s: %s; %s\n", d.Feature, d.Reason, d.Remedy)
	}
	if claims := claimsOf(e.Description); len(claims) > 0 {
		fmt.Fprintf(w, "claims    %s (they may tighten what is done, never loosen it)\n", strings.Join(claims, ", "))
	}
	for _, warning := range e.Warnings {
		fmt.Fprintln(w, "warning   "+oneLine(warning))
	}
	return nil
}

func wishedNetwork(w *pluginv1.SandboxWish) string {
	if w.GetNetwork() {
		return "host"
	}
	return ""
}

func paths(list []string) string {
	if len(list) == 0 {
		return "nothing of the host's"
	}
	return strings.Join(slices.Clone(list), " ")
}

func duration(d time.Duration) string {
	if d == budget.Infinite {
		return "infinite"
	}
	return d.String()
}

func size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return units.BytesSize(float64(bytes))
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func percent(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d%%", n)
}

func milliseconds(ms int64) string {
	if ms == 0 {
		return ""
	}
	return elapsed(ms)
}
