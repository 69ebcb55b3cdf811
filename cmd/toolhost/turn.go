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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

// turnFlags are those of a batch.
type turnFlags struct {
	callFlags
	plugins []string
	format  string
}

var turnKeys = keys{"max-calls": "turn.maxCalls", "tool-time": "turn.toolTime", "deadline": "turn.deadline", "reserve": "turn.reserve"}

func newTurn() *cobra.Command {
	var flags turnFlags
	cmd := &cobra.Command{
		Use: "turn [flags] BATCH", Short: "Run a batch of calls as one turn",
		Long: `Run a batch of calls as one turn. BATCH is a file, or - for stdin: a JSON list of
{"id","tool","arguments","meta"}, where only the tool is required, or with
--format a whole response of that model API. Every call gets exactly one result;
they are printed in call order, as a JSON list or in the same API's shape. A call
that is wrong gets a result that says so, and does not affect the others. The
tools are those of --plugin and of the configuration.

A turn's budget reserves the end of its deadline for the model's last answer. Here
no answer follows, so nothing is reserved unless --reserve or turn.reserve says so.

Exit codes: 0 all calls ok, else the first of these that holds for a call: 4 nobody to
ask, 125 the host itself failed, 130 aborted, 1 any other failure, timeouts included.
2 usage or config: no call was made.`,
		Example: "  toolhost turn --plugin ./bin/search --read . batch.json\n  toolhost turn --format anthropic --plugin ./bin/search - < response.json",
		Args:    cmdline.Words(1, "BATCH"),
		RunE:    func(_ *cobra.Command, args []string) error { return runTurn(&flags, args[0]) },
	}
	cmd.Flags().StringArrayVar(&flags.plugins, "plugin", nil, "offer the tools of this plugin; may be repeated")
	cmd.Flags().StringVar(&flags.format, "format", "", "read the batch from a response, and print the results, in this `FORMAT`: "+strings.Join(format.Names(), ", "))
	cmd.Flags().Int("max-calls", 0, "calls that the turn may make (default 50)")
	cmdline.DurationVar(cmd.Flags(), new(time.Duration), "tool-time", 0, "time that all calls together may run (default none)")
	cmdline.DurationVar(cmd.Flags(), new(time.Duration), "deadline", 0, "limit of the whole turn, not counting waits for people (default none)")
	cmdline.DurationVar(cmd.Flags(), new(time.Duration), "reserve", 0, "end of the deadline in which no call may run (default turn.reserve, else none)")
	flags.register(cmd)
	flags.journal.register(cmd, true)
	flags.own = turnKeys
	return cmd
}

func runTurn(flags *turnFlags, path string) error {
	calls, provider, err := flags.readBatch(path)
	if err != nil {
		return err
	}
	flags.once = true
	k, err := flags.open()
	if err != nil {
		return err
	}
	defer k.Close()
	k.tells = true
	tools, err := k.ofBatch(flags.plugins, calls)
	if err != nil {
		return err
	}
	bounds, err := boundsOf(k.loaded.Turn.Budget)
	if err != nil {
		return err
	}
	s := session{app: k, tools: tools, calls: turnCalls(calls), spec: turn.Spec{Budget: bounds}}
	results, err := s.run()
	if err != nil && results == nil {
		return err
	}
	for i, r := range results {
		r.CallID = calls[i].ID
	}
	k.tellRefused(results)
	stdout := &exit.Stdout{File: os.Stdout}
	printErr := printResults(stdout, calls, results, provider)
	if printErr != nil && !errors.Is(printErr, syscall.EPIPE) {
		return hostError(printErr)
	}
	if err == nil {
		err = flags.turnExit(results)
	}
	if err == nil && printErr != nil {
		return stdout.End(printErr)
	}
	return err
}

// boundsOf is a configured budget, which by default keeps nothing for an answer here.
func boundsOf(b budget.TurnSpec) (budget.TurnSpec, error) {
	b.Reserve = cmp.Or(b.Reserve, budget.NoReserve)
	if b.Deadline > 0 && b.Reserve >= b.Deadline {
		return b, exit.Usagef("of the deadline of %s, %s are kept for a last answer, which leaves no time for calls: give a longer --deadline or a shorter --reserve", b.Deadline, b.Reserve)
	}
	return b, nil
}

// tellRefused says what to do where the budget was too small.
func (k *app) tellRefused(results []*api.Result) {
	n := 0
	for _, r := range results {
		if r.Status == api.StatusDenied && r.Reason == api.ReasonTurnBudget {
			n++
		}
	}
	if n > 0 && !k.flags.quiet && !k.flags.json && !k.flags.events {
		fmt.Fprintf(os.Stderr, "toolhost: the turn's budget refused %d of %d calls: give it more with --max-calls, --tool-time or --deadline, or a shorter --reserve\n", n, len(results))
	}
}

// turnCalls are the calls under ids that a turn takes.
func turnCalls(calls []format.Call) []turn.Call {
	taken := make(map[string]bool, len(calls))
	for _, c := range calls {
		taken[c.ID] = true
	}
	list := make([]turn.Call, len(calls))
	for i, c := range calls {
		list[i] = turn.Call{ID: turnID(c.ID, i, taken), Tool: c.Tool, Arguments: c.Arguments, Meta: c.Meta, Problem: c.Problem}
	}
	return list
}

const (
	// maxTurnID is what a turn takes of an id; a longer one is known in it, and on
	// record, by keptOfID of it and the call's number.
	maxTurnID = 128
	keptOfID  = 64
)

func turnID(id string, i int, taken map[string]bool) string {
	if len(id) <= maxTurnID {
		return id
	}
	id = fmt.Sprintf("%s…%d", strings.ToValidUTF8(id[:keptOfID], ""), i+1)
	for taken[id] {
		id += "."
	}
	taken[id] = true
	return id
}

// turnExit is the code of a whole batch: what nobody could be asked, then a host
// that failed, then an abort. All else is a failed call: which one and why is in
// the results, and what a model got wrong is not wrong usage.
func (f *turnFlags) turnExit(results []*api.Result) error {
	codes := map[int]bool{}
	for _, r := range results {
		codes[f.exitCode(r, false)] = true
	}
	delete(codes, exit.OK)
	for _, code := range []int{exit.Headless, exit.Host, exit.Aborted} {
		if codes[code] {
			return exit.With(code, nil)
		}
	}
	if len(codes) > 0 {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

func printResults(w io.Writer, calls []format.Call, results []*api.Result, provider format.Provider) error {
	if provider == nil {
		return present.JSON(w, results, false)
	}
	raw, err := provider.Results(calls, results)
	if err != nil {
		return err
	}
	return present.Raw(w, raw)
}

// ofBatch are the tools of plugins that a batch may call, by the names that models
// use; where they are denied none is run, and what no configuration has is theirs.
func (k *app) ofBatch(plugins []string, calls []format.Call) (map[string]turn.Tool, error) {
	tools := map[string]turn.Tool{}
	if k.loaded.Default.Mode == turn.ModeDeny && len(plugins) > 0 {
		for _, call := range calls {
			if _, configured := k.catalog.Offered(call.Tool); !configured {
				tools[call.Tool] = turn.Tool{Name: call.Tool, Mode: turn.ModeDeny}
			}
		}
		return tools, nil
	}
	own, err := k.ofPlugins(plugins)
	if err != nil {
		return nil, err
	}
	for name, tool := range own {
		path, called := tool.Request.Tool.Path, slices.ContainsFunc(calls, func(c format.Call) bool { return c.Tool == name })
		if name == turn.StatusTool {
			return nil, exit.Usagef("the tool name %q of %s is taken: offer only one tool of that name", name, path)
		}
		if err := k.notConfigured(name, path, called); err != nil {
			return nil, err
		}
		tools[name] = tool.Tool
	}
	return tools, nil
}

// notConfigured refuses a plugin's tool that would take the place of a configured
// one, and so of what the operator says of it. What servers have is asked only for
// one that is called.
func (k *app) notConfigured(name, path string, called bool) error {
	entry, configured := k.loaded.Tool(name)
	configured = configured && entry.Type != config.TypeMCP // a server's tools have names of their own
	if !configured && called {
		tool, err := k.catalog.Find(context.Background(), name)
		entry, configured = &tool.Entry, err == nil
	}
	if configured {
		return exit.Usagef("the tool name %q of %s is taken by the configuration's %s (%s): leave out one of them", name, path, entry.Name, entry.Source)
	}
	return nil
}

const maxBatchBytes = 8 << 20

// readBatch reads calls from a file or stdin.
func (f *turnFlags) readBatch(path string) (calls []format.Call, provider format.Provider, err error) {
	raw, err := readBounded(path, maxBatchBytes)
	if err != nil {
		return nil, nil, exit.Usagef("cannot read the batch: %w", err)
	}
	if f.format == "" {
		calls, err = format.ReadList(raw)
	} else if provider, err = format.Lookup(f.format); err == nil {
		calls, err = provider.Calls(raw)
	}
	if err != nil {
		return nil, nil, exit.Usagef("cannot read batch %s: %w", path, err)
	}
	return calls, provider, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	in := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return raw, err
}
