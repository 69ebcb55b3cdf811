package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/conformance"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

type testFlags struct {
	tool, cases, junit, net   string
	calls, read, write, fails []string
	grace                     time.Duration
	json, strict              bool
}

func newTest() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [flags] BINARY|PACK",
		Short: "Hold a binary to the plugin protocol",
		Long: `Test a plugin binary, written in any language, against the plugin protocol: start
it many times, play its host in every way that a host may behave, and report for
each rule whether it holds, what to fix if not, and why it could not be tried.
Everything runs in the sandbox. The other files of a pack can be read, and are the
working directory.

Arguments are made up from the tools' schemas, or given by --call, or by a file
of cases:

  cases:
    - tool: greet            # may be left out where there is only one
      args: {name: you}
      expect: ok             # or error; ok by default
      text: Hello            # must be in its text, or its error
    - args: {name: you, times: 1000}
      long: true             # runs until it is told to end,
      partial: true          # and shows something before that
  sandbox: {read: [.], write: [], network: none}

Exit codes: 0 no rule was broken, 1 some were, 2 usage, 125 this machine cannot
run tools, 130 aborted.`,
		Example: "  toolsdk test ./greet\n  toolsdk test --cases toolsdk.yaml --junit report.xml ./greet\n  toolsdk test --call 'greet={\"name\":\"you\"}' ./greet",
		Args:    cmdline.Words(1, "BINARY"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tool, "tool", "", "try only this tool of the binary")
	flags.StringVar(&f.cases, "cases", "", "`FILE` of cases, YAML or JSON")
	flags.StringArrayVar(&f.calls, "call", nil, "one more case, as `NAME={json}`, or {json} where there is only one tool")
	flags.StringArrayVar(&f.read, "read", nil, "show the file or folder `PATH` to every call")
	flags.StringArrayVar(&f.write, "write", nil, "show `PATH` to the cases and let them change it; never to made-up calls")
	flags.StringVar(&f.net, "net", "", "network of the cases: none (the default) or host")
	cmdline.DurationVar(flags, &f.grace, "grace", 0, "how long a call may take to end when it is told to (default 2s)")
	flags.StringVar(&f.junit, "junit", "", "write the report as JUnit XML to `FILE` too")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON, alone, on stdout")
	flags.BoolVar(&f.strict, "strict", false, "take warnings for failures")
	flags.StringSliceVar(&f.fails, "expect-fail", nil, "succeed if exactly these `RULES` are broken, for tests of this command")
	flags.SortFlags = false
	return cmd
}

func (f *testFlags) run(cmd *cobra.Command, path string) error {
	cases, err := f.readCases(cmd)
	if err != nil {
		return usage(err)
	}
	if err := f.checkRules(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return exit.With(exit.Host, err)
	}
	t, err := openTarget(path)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.dir != "" {
		cases.Sandbox.Read = append(cases.Sandbox.Read, t.dir)
	}
	t.tool.Name = f.tool
	ctx, stop := signal.NotifyContext(cmd.Context(), signals.NotIgnored(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	defer stop()
	host, err := newHost()
	if err != nil {
		return err
	}
	defer host.Close()
	junit, err := f.createJUnit()
	if err != nil {
		return err
	}
	defer f.leaveJUnit(junit)
	out := cmd.OutOrStdout()
	o := conformance.Options{
		Tool: t.tool, Driver: supervisor.Tool{Path: self, Args: []string{driverCommand}},
		Dir: t.dir, Cases: cases, Grace: f.grace,
	}
	if !f.json {
		o.Done = func(c conformance.Check) { _ = conformance.WriteCheck(out, c) }
	}
	report, err := conformance.Run(ctx, host, o)
	if ctx.Err() != nil {
		return exit.With(exit.Aborted, errors.New("interrupted: the results above are valid; the remaining rules were not tried"))
	}
	if err != nil {
		return usage(err)
	}
	return f.tell(out, junit, report)
}

// checkRules refuses rules that nothing can break.
func (f *testFlags) checkRules() error {
	for _, id := range f.fails {
		if all := conformance.Rules(); !slices.Contains(all, id) {
			return exit.Usagef("--expect-fail %q is not a rule: give some of %s", id, strings.Join(all, ", "))
		}
	}
	return nil
}

// readCases puts file and flags together.
func (f *testFlags) readCases(cmd *cobra.Command) (*conformance.Cases, error) {
	cases := &conformance.Cases{}
	if f.cases != "" {
		raw, err := os.ReadFile(f.cases)
		if err != nil {
			return nil, fmt.Errorf("cannot read the cases: %w", err)
		}
		if cases, err = conformance.ParseCases(f.cases, raw); err != nil {
			return nil, err
		}
	}
	for _, text := range f.calls {
		c, err := conformance.ParseCall(text)
		if err != nil {
			return nil, err
		}
		cases.Cases = append(cases.Cases, c)
	}
	g := &cases.Sandbox
	g.Read, g.Write = append(g.Read, f.read...), append(g.Write, f.write...)
	if f.net != "" {
		g.Network = f.net
	}
	policy := sandbox.Policy{Read: g.Read, Write: g.Write, Network: g.Network}
	if err := policy.Check(); err != nil {
		return nil, err
	}
	if f.grace < 0 || f.grace == 0 && cmd.Flags().Changed("grace") {
		return nil, fmt.Errorf("--grace %s: give a positive duration such as 2s", f.grace)
	}
	return cases, nil
}

// createJUnit opens the report's file before the run, which may take minutes; nil
// if none is wanted. An earlier report stays in the file until there is a new one.
func (f *testFlags) createJUnit() (*os.File, error) {
	if f.junit == "" {
		return nil, nil
	}
	file, err := os.OpenFile(f.junit, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, exit.Usagef("cannot write the report: %w", err)
	}
	return file, nil
}

// leaveJUnit closes the file, if tell has not. An empty one is removed, which readers of
// XML would fail on.
func (f *testFlags) leaveJUnit(junit *os.File) {
	if info, err := junit.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_ = os.Remove(f.junit)
	}
	_ = junit.Close()
}

// tell writes the report wherever it is wanted. That the file could not be written
// is told beside the rest.
func (f *testFlags) tell(out io.Writer, junit *os.File, r *conformance.Report) error {
	var unwritten error
	if junit != nil {
		_ = junit.Truncate(0) // which not all files have, such as a pipe
		if err := errors.Join(r.JUnit(junit), junit.Close()); err != nil {
			unwritten = exit.With(exit.Host, fmt.Errorf("cannot write the report to %s: %w", f.junit, err))
		}
	}
	if err := f.print(out, r); err != nil {
		return exit.With(exit.Host, err)
	}
	if unwritten == nil {
		return f.verdict(r)
	}
	return errors.Join(f.verdict(r), unwritten)
}

// print writes the report as JSON, or what is left to say for people.
func (f *testFlags) print(out io.Writer, r *conformance.Report) error {
	if !f.json {
		return r.WriteSummary(out)
	}
	encoder := json.NewEncoder(terminal.JSON(out))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func (f *testFlags) verdict(r *conformance.Report) error {
	broken := r.Failed()
	if len(f.fails) > 0 {
		slices.Sort(f.fails)
		if want := slices.Compact(f.fails); !slices.Equal(broken, want) {
			return exit.With(exit.Failed, fmt.Errorf("broken rules: %s; expected: %s", orNone(broken), orNone(want)))
		}
		return nil
	}
	if len(broken) > 0 || f.strict && r.Count(conformance.Warn) > 0 {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
