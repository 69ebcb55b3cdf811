package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

func newExplain() *cobra.Command {
	var flags callFlags
	cmd := &cobra.Command{
		Use: "explain [flags] TOOL", Short: "Show what a tool would be granted, and where each value comes from",
		Long: `Show what a tool would be granted, where each value comes from, and what else the
tool wished for. It takes the flags of run that say what a call is granted, and runs
nothing but the tool's own description of itself.`,
		Example: "  toolhost explain --read . --timeout 5s ./bin/search",
		Args:    cmdline.Words(1, "TOOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.OutOrStdout(), &flags, args[0])
		},
	}
	flags.register(cmd)
	return cmd
}

func explain(w io.Writer, flags *callFlags, tool string) error {
	k, err := flags.open()
	if err != nil {
		return err
	}
	defer k.Close()
	k.tells = true
	found, err := k.find(context.Background(), tool)
	if unknown, ok := errors.AsType[*catalog.DescribeError](err); err != nil && !ok {
		return toolError(err)
	} else if ok {
		return resultError(unknown.Result)
	}
	request := unrun(found)
	warnings := fleetWarnings(k.loaded, found.Entry)
	e, err := k.explain(found.Entry, request)
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	if found.Entry.Type == config.TypeMCP { // what would be told is the adapter's
		e.Path, e.SHA256 = "", ""
	}
	e.NotPrestarted = cmp.Or(found.NotPrestarted, e.NotPrestarted)
	e.Warnings = append(e.Warnings, warnings...)
	if found.Held != "" {
		e.Warnings = append(e.Warnings, "the tool is held back: "+found.Held)
	}
	settings, manifest := settingsOf(e, found.Entry), k.packs.ManifestSHA256(request.Tool.Path)
	if flags.json {
		return explainJSON(w, e, manifest, settings)
	}
	return explainText(w, e, manifest, settings)
}

// explain is the host's, of what this machine would grant; it is the same with any labels.
func (k *app) explain(entry config.Tool, r supervisor.Request) (*supervisor.Explanation, error) {
	where, files, dir := r.Where, r.Sandbox, r.Dir
	r.Where = nil
	if r.Command != nil && k.loaded.OnWorkersOnly(entry) { // which have it: one without a name is not looked for
		command := *r.Command
		command.Argv = []string{""}
		r.SHA256, r.Command = "", &command
	}
	if len(where) == 0 || files == nil {
		return k.host.Explain(context.Background(), r)
	}
	policy := *files // whose paths are a worker's
	policy.Read, policy.Write = nil, nil
	r.Sandbox, r.Dir = &policy, ""
	e, err := k.host.Explain(context.Background(), r)
	if err == nil {
		e.Sandbox.Read, e.Sandbox.Write = append(e.Sandbox.Read, files.Read...), append(e.Sandbox.Write, files.Write...)
		e.Dir = cmp.Or(dir, e.Dir)
	}
	return e, err
}

// unrun is a tool's request. That of one that is denied is a command's: what it
// would be granted is told without asking it what it is.
func unrun(tool catalog.Tool) supervisor.Request {
	r := tool.Request
	if tool.Mode == turn.ModeDeny && r.Command == nil {
		r.Name, r.Command, r.Tool = tool.Name, &supervisor.Command{Argv: []string{r.Tool.Path}}, supervisor.Tool{}
	}
	return r
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

func settingsOf(e *supervisor.Explanation, entry config.Tool) []setting {
	wish, hints := e.Description.GetWish(), e.Description.GetTimeouts()
	from := func(key string) string { return cmp.Or(source(entry, key), "default") }
	rows := []setting{
		{"timeout", duration(e.Timeout.Timeout), timeoutSource(e.Timeout), milliseconds(hints.GetTimeoutMs())},
		{"soft budget", duration(e.Timeout.SoftBudget), from("soft"), milliseconds(hints.GetSoftBudgetMs())},
		{"grace", duration(e.Grace), from("grace"), ""},
		{"memory", cmp.Or(size(e.Limits.MemoryBytes), "unlimited"), from("memory"), size(wish.GetMemoryBytes())},
		{"pids", cmp.Or(number(e.Limits.Pids), "unlimited"), from("pids"), number(wish.GetPids())},
		{"cpu", percent(e.Limits.CPUPercent), from("cpu"), ""},
		{"output kept", size(e.Limits.OutputBytes), from("output"), ""},
		{"network", e.Sandbox.Network, from("network"), wishedNetwork(wish)},
		{"read", paths(e.Sandbox.Read), from("read"), strings.Join(wish.GetRead(), " ")},
		{"write", paths(e.Sandbox.Write), from("write"), strings.Join(wish.GetWrite(), " ")},
		{"mode", cmp.Or(string(entry.Mode), "as the tool's claims say"), from("mode"), ""},
		{"working dir", e.Dir, cmp.Or(source(entry, "dir"), "where the call starts"), ""},
		{"sandbox", e.Sandbox.Tier, from("tier"), ""},
	}
	for _, grant := range e.Sandbox.Grants {
		rows = append(rows, setting{"reach", grant, from("network"), ""})
	}
	return append(rows, alsoSet(entry, e.Sandbox.Tier, e.Sandbox.Network)...)
}

// ownRows are the keys that have a row of their own, or stand above the table.
var ownRows = []string{
	"timeout", "soft", "grace", "memory", "pids", "cpu", "output", "network", "read", "write", "mode", "dir", "tier", "title", "description",
}

// alsoSet is what else the configuration says of the tool, under its keys.
func alsoSet(entry config.Tool, tier, net string) (rows []setting) {
	for _, v := range entry.Values() {
		key := v.Path
		if tier == sandbox.TierNone && config.NeedsSandbox(key) {
			v.Text = "not in force: no sandbox"
		}
		limits := net == sandbox.NetworkGrants && config.LimitsNetwork(key)
		if (v.Source.Layer != config.LayerBuiltIn || limits) && !slices.Contains(ownRows, key) {
			rows = append(rows, setting{Name: key, Value: v.Text, From: v.Source.String()})
		}
	}
	return rows
}

// source is where a value stands that is in force: a flag, a place in a file or a
// variable; empty for a default.
func source(entry config.Tool, key string) string {
	if v, ok := entry.Value(key); ok && v.Source.Layer != config.LayerBuiltIn {
		return v.Source.String()
	}
	return ""
}

func timeoutSource(r budget.Resolution) string {
	source := string(r.Source)
	switch {
	case r.Source == budget.LayerStandard:
		source = "default"
	case r.Source == budget.LayerGlobal:
		source = r.SourceDetail
	case r.SourceDetail != "":
		source += " (" + r.SourceDetail + ")"
	}
	if r.Clamped {
		source += fmt.Sprintf(", clamped to %s..%s", r.Min, duration(r.Max))
	}
	return source
}

// manifest is the SHA-256 of a pack's manifest; empty without a pack.
func explainJSON(w io.Writer, e *supervisor.Explanation, manifest string, settings []setting) error {
	return present.JSON(w, struct {
		*supervisor.Explanation
		ManifestSHA256 string    `json:"manifestSha256,omitempty"`
		Settings       []setting `json:"settings"`
		Claims         []string  `json:"claims"`
	}{e, manifest, settings, claimsOf(e.Description)}, true)
}

// nearer names a file below the folder here from there. Its path stands alone in from,
// behind a class or in brackets.
func nearer(from, here string) string {
	if here == "" || here == "/" {
		return from
	}
	for _, before := range []string{", ", "("} {
		from = strings.ReplaceAll(from, before+here+"/", before)
	}
	return strings.TrimPrefix(from, here+"/")
}

func explainText(w io.Writer, e *supervisor.Explanation, manifest string, settings []setting) error {
	page(w, "", terminal.OneLine(e.Tool))
	if e.SHA256 != "" {
		page(w, "", terminal.OneLine(e.Path))
		page(w, "", "sha256 "+e.SHA256)
	}
	if manifest != "" {
		page(w, "", "manifest sha256 "+manifest+", to pin the pack by")
	}
	fmt.Fprintln(w)
	here, _ := os.Getwd() // without one no path is cut
	rows := [][]string{{"SETTING", "IN FORCE", "FROM", "THE TOOL WISHED"}}
	for _, s := range settings {
		rows = append(rows, []string{terminal.Cell(s.Name), terminal.Cell(s.Value), terminal.Cell(nearer(s.From, here)), terminal.Cell(s.Wished)})
	}
	if err := present.Table(w, rows, 1); err != nil {
		return err
	}
	fmt.Fprintln(w)
	page(w, "enforced  ", strings.Join(e.Sandbox.Enforced, " "))
	for _, d := range e.Sandbox.Degraded {
		page(w, "degraded  ", terminal.OneLine(d.Feature+": "+d.Reason+"; "+d.Remedy))
	}
	page(w, "prestart  ", prestarts(e))
	if claims := claimsOf(e.Description); len(claims) > 0 {
		page(w, "claims    ", strings.Join(claims, ", ")+" (they may tighten what is done, never loosen it)")
	}
	for _, warning := range e.Warnings {
		page(w, "warning   ", terminal.OneLine(warning))
	}
	return nil
}

// prestarts says how many processes wait for calls of the tool, or why none does.
func prestarts(e *supervisor.Explanation) string {
	switch {
	case e.NotPrestarted != "":
		return "not possible: " + terminal.OneLine(e.NotPrestarted)
	case e.Prestart == 0:
		return "none asked for (prestart); it is possible"
	}
	return fmt.Sprintf("%d processes of the daemon wait for calls", e.Prestart)
}

// page writes a line, wrapped to the page, with a word before it.
func page(w io.Writer, word, line string) {
	for _, part := range present.Wrap(line, present.PageColumns-len(word)) {
		fmt.Fprintln(w, word+part)
		word = strings.Repeat(" ", len(word))
	}
}

func wishedNetwork(w *pluginv1.SandboxWish) string {
	if w.GetNetwork() {
		return "host"
	}
	return strings.Join(w.GetReach(), " ")
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
	return present.Elapsed(ms)
}
