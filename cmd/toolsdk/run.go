package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/toolrun"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

type runFlags struct {
	args, net              string
	sandbox, watch, json   bool
	timeout, grace         time.Duration
	read, write, env, asks []string
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] BINARY|PACK [NAME] [key=value ...]",
		Short: "Call a tool and show everything",
		Long: `Call a tool and show everything: content as it comes, progress, logs, what it
printed, the stack of a panic, where the time went. NAME is needed where the
binary has several tools. Without --sandbox the tool has your own rights, which
makes it easy to debug; with it, it has what a host would grant. The other files of a
pack can be read, and are the working directory.

` + exitDescription,
		Example: "  toolsdk run ./greet name=you\n  toolsdk run --watch --sandbox --read . ./search pattern=TODO path=.",
		Args:    cmdline.Words(cmdline.Many, "BINARY"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return f.run(cmd, words)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.args, "args", "", "whole arguments as a `JSON` object, or - to read them from stdin")
	flags.BoolVar(&f.sandbox, "sandbox", false, "run it in the sandbox")
	flags.StringArrayVar(&f.read, "read", nil, "with --sandbox: show the file or folder `PATH` to the call")
	flags.StringArrayVar(&f.write, "write", nil, "with --sandbox: show `PATH` and let the call change it")
	flags.StringVar(&f.net, "net", "", "with --sandbox: network, none (the default) or host")
	flags.StringArrayVar(&f.env, "env", nil, "set `K=V` in the tool's environment, or pass K on from this one")
	flags.StringArrayVar(&f.asks, "answer", nil, "answer the tool's next question with this `JSON` value; without one nobody is there")
	cmdline.DurationVar(flags, &f.timeout, "timeout", 0, "wall-clock limit (default the tool's own hint, or 30s)")
	cmdline.DurationVar(flags, &f.grace, "grace", 0, "time between SIGTERM and SIGKILL (default 2s)")
	flags.BoolVar(&f.watch, "watch", false, "call it again whenever there is a new build of it, until Ctrl-C")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON, alone, on stdout")
	flags.SortFlags = false
	return cmd
}

func (f *runFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"read", "write", "net"} {
		if cmd.Flags().Changed(name) && !f.sandbox {
			return exit.Usagef("--%s is for the sandbox: give --sandbox too", name)
		}
	}
	if err := callargs.CheckEnv(f.env); err != nil {
		return exit.With(exit.Usage, err)
	}
	switch {
	case f.timeout < 0, f.timeout == 0 && cmd.Flags().Changed("timeout"):
		return exit.Usagef("--timeout %s is not a limit: give a positive duration such as 30s", f.timeout)
	case f.grace < 0 || f.grace > budget.MaxGrace:
		return exit.Usagef("--grace %s: give up to %s", f.grace, budget.MaxGrace)
	case f.grace == 0 && cmd.Flags().Changed("grace"):
		f.grace = budget.NoGrace
	}
	for _, answer := range f.asks {
		if !json.Valid([]byte(answer)) {
			return exit.Usagef("--answer %q is not JSON: a text needs quotes of its own, such as '\"yes\"'", answer)
		}
	}
	return nil
}

func (f *runFlags) run(cmd *cobra.Command, words []string) error {
	caught := make(chan os.Signal, 4)
	signal.Notify(caught, signals.NotIgnored(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	defer signal.Stop(caught)
	t, words, err := f.takeTarget(words)
	if err != nil {
		return err
	}
	defer t.Close()
	host, err := newHost()
	if err != nil {
		return err
	}
	defer host.Close()
	var stdin json.RawMessage
	if f.args == "-" { // which can be read once only
		if stdin, err = callargs.Whole(f.args, cmd.InOrStdin()); err != nil {
			return usage(err)
		}
	}
	watcher := toolrun.Watch(t.tool.Path)
	for {
		err := f.once(cmd, host, t, words, stdin, caught)
		end := exit.Of(err)
		if !f.watch || end.Code == exit.Aborted {
			return err
		}
		if end.Err != nil {
			exit.Tell(os.Stderr, "toolsdk", end.Err)
		}
		fmt.Fprintf(os.Stderr, "-- waiting for a new build of %s, Ctrl-C ends\n", t.tool.Path)
		if !watcher.Next(caught) {
			return nil
		}
	}
}

// takeTarget takes the binary or pack, and the tool's name if there is one, off
// the words. The target is to be closed.
func (f *runFlags) takeTarget(words []string) (*target, []string, error) {
	t, err := openTarget(words[0])
	if err != nil {
		return nil, nil, err
	}
	if f.watch && t.opened != nil {
		t.Close()
		return nil, nil, exit.Usagef("--watch waits for builds, and %s is a pack: give the binary that it is made of", words[0])
	}
	if words = words[1:]; len(words) > 0 && !strings.Contains(words[0], "=") {
		t.tool.Name, words = words[0], words[1:]
	}
	return t, words, nil
}

// once makes one call.
func (f *runFlags) once(cmd *cobra.Command, host *supervisor.Supervisor, t *target, words []string, stdin json.RawMessage, caught <-chan os.Signal) error {
	request := supervisor.Request{Tool: t.tool, SHA256: t.sha256, Dir: t.dir, Env: callargs.Environment(f.env), Grace: f.grace, Sandbox: f.policy(t)}
	if f.timeout > 0 {
		request.Timeouts = []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: f.timeout, Detail: "--timeout"}}
	}
	d, err := describeFor(cmd, host, request)
	if err != nil {
		return err
	}
	described, err := t.choose(d)
	if err != nil {
		return err
	}
	if request.Arguments, err = f.arguments(words, stdin, described.GetInputSchema()); err != nil {
		return usage(err)
	}
	if !f.json {
		toolrun.WriteWarnings(os.Stderr, d.Warnings)
		fmt.Fprintln(os.Stderr, terminal.OneLine(heading(t.tool, described)))
	}
	out := cmd.OutOrStdout()
	if f.json {
		out = terminal.JSON(out)
	}
	result, aborted, err := toolrun.Call(context.Background(), host, request, toolrun.Options{
		Out: out, Err: cmd.ErrOrStderr(), People: term.IsTerminal(int(os.Stdout.Fd())),
		JSON: f.json, Answers: answers(f.asks), Signals: caught,
	})
	switch {
	case err != nil:
		return exit.With(exit.Host, err)
	case aborted:
		return exit.With(exit.Aborted, nil)
	case !result.OK():
		return exit.With(exitCode(result), nil)
	}
	return nil
}

func heading(tool supervisor.Tool, d *pluginv1.ToolDescription) string {
	name := cmp.Or(d.GetName(), filepath.Base(tool.Path))
	if d.GetDescription() == "" {
		return name
	}
	return name + ": " + text.FirstLine(d.GetDescription())
}

func (f *runFlags) policy(t *target) *supervisor.Policy {
	if !f.sandbox {
		return &supervisor.Policy{Tier: sandbox.TierNone}
	}
	p := &supervisor.Policy{Read: f.read, Write: f.write, Network: f.net}
	if t.dir != "" {
		p.Read = append(slices.Clone(f.read), t.dir)
	}
	if len(p.Read)+len(p.Write) > 0 {
		p.Allow = []string{sandbox.SharedUID} // who grants paths by hand wants them used with his own rights
	}
	return p
}

func (f *runFlags) arguments(words []string, stdin, schema json.RawMessage) (json.RawMessage, error) {
	if stdin != nil && len(words) == 0 {
		return stdin, nil
	}
	return callargs.Of(words, f.args, nil, schema)
}

func answers(texts []string) (list []json.RawMessage) {
	for _, text := range texts {
		list = append(list, json.RawMessage(text))
	}
	return list
}

// exitCode of a call that did not succeed.
func exitCode(r *api.Result) int {
	switch r.Status {
	case api.StatusTimeout:
		return exit.Timeout
	case api.StatusCancelled:
		return exit.Aborted
	case api.StatusInvalidArgs:
		return exit.Usage
	case api.StatusOverloaded:
		return exit.Host
	case api.StatusStartFailed, api.StatusPolicyViolation:
		return exit.Start(r.Reason)
	}
	return exit.Failed
}
