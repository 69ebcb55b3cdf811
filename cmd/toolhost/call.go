package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
)

// callCommand is a call by the daemon. Of callFlags it has those that the API
// can be told: limits and grants are the daemon's.
type callCommand struct {
	remoteFlags
	flags         callFlags
	timeout, soft time.Duration
	args          string
	// retries is how often the call is made again at most.
	retries int
}

func newCall() *cobra.Command {
	var c callCommand
	cmd := &cobra.Command{
		Use: "call [flags] TOOL [key=value ...]", Short: "Call a tool of the daemon once",
		Long: `Call a tool of the daemon once, as a turn of its own. A value of key=value is
read as the type that the tool's schema gives it; a list is given by repeating
its key. The daemon decides what the call may access and use. Ctrl-C ends it, a
second one kills it at once; if this command dies, the daemon aborts the call.

With --retries a failed call is made again, as another turn, but only if its result
calls it retryable: the tool never started, or the operator has confirmed that it is
read-only or idempotent. The waits between attempts grow from about 200ms to at most
10s.

` + exitDescription,
		Example: "  toolhost call search pattern=TODO path=/srv/src\n  toolhost call --json --timeout 5s search --args '{\"pattern\":\"TODO\"}'",
		Args:    cmdline.Words(cmdline.Many, "TOOL"),
		RunE:    func(_ *cobra.Command, words []string) error { return c.run(words[0], words[1:]) },
	}
	flags := cmd.Flags()
	c.flags.given = flags
	cmdline.DurationVar(flags, &c.timeout, "timeout", 0, "wall-clock limit, within what the daemon allows (default the tool's)")
	cmdline.DurationVar(flags, &c.soft, "soft", 0, "soft budget: a call over it is reported, and goes on (default the tool's)")
	flags.StringVar(&c.args, "args", "", "whole arguments as a `JSON` object, or - to read them from stdin")
	flags.IntVar(&c.retries, "retries", 0, "retry a failed call up to this many times, at most 10, if its result calls it retryable")
	c.flags.registerHeadless()
	c.flags.registerOutput()
	flags.SortFlags = false
	c.register(cmd)
	return cmd
}

func (c *callCommand) run(tool string, words []string) error {
	for name, d := range map[string]time.Duration{"timeout": c.timeout, "soft": c.soft} {
		if d < 0 {
			return exit.Usagef("--%s %s is negative: give a positive one such as 30s", name, d)
		}
	}
	if c.retries < 0 || c.retries > maxRetries {
		return exit.Usagef("--retries %d is out of range: give 0 to %d", c.retries, maxRetries)
	}
	return c.ask(func(daemon *remote) error {
		schema, err := schemaFor(daemon, tool, words)
		if err != nil {
			return err
		}
		call, err := c.call(tool, words, schema)
		if err != nil {
			return err
		}
		result, err := c.calls(daemon, call)
		if result == nil {
			return err
		}
		if result.Status == api.StatusInvalidArgs && result.Reason == api.ReasonCall {
			return unknownTool(daemon, tool)
		}
		return finishCall(result, &c.flags, false)
	})
}

// schemaFor is that of a tool's arguments, if words need it.
func schemaFor(daemon *remote, tool string, words []string) (json.RawMessage, error) {
	if len(words) == 0 {
		return nil, nil
	}
	found, err := daemon.Tool(context.Background(), tool)
	switch {
	case err != nil:
		return nil, err
	case len(found.Tools) > 0:
		return found.Tools[0].InputSchema, nil
	case len(found.Problems) > 0:
		return nil, nil
	}
	return nil, unknownTool(daemon, tool)
}

// call is what the daemon is asked for. A tool that it could not describe has no
// schema: the daemon reports why.
func (c *callCommand) call(name string, words []string, schema json.RawMessage) (call api.Call, err error) {
	call = api.Call{ID: rand.Text(), Tool: name}
	if call.Arguments, err = callargs.Of(words, c.args, os.Stdin, schema); err != nil {
		return call, exit.With(exit.Usage, err)
	}
	call.Meta, err = c.meta()
	return call, err
}

// meta is what the call asks for; nil for nothing.
func (c *callCommand) meta() (json.RawMessage, error) {
	asked := map[string]int64{}
	if c.flags.set("timeout") {
		asked[budget.MetaKey] = c.timeout.Milliseconds()
	}
	if c.soft > 0 {
		asked[budget.SoftMetaKey] = c.soft.Milliseconds()
	}
	if len(asked) == 0 {
		return nil, nil
	}
	return json.Marshal(asked)
}

// unknownTool returns a usage error for an unknown tool, and says why configured
// ones are missing.
func unknownTool(daemon *remote, name string) error {
	list, err := daemon.Tools(context.Background())
	if err != nil {
		return err
	}
	for _, problem := range list.Problems {
		fmt.Fprintln(os.Stderr, "toolhost: "+terminal.OneLine(problem))
	}
	return exit.Usagef("the daemon has no tool %q: %s", name, offered(list.Tools))
}

func offered(tools []api.Tool) string {
	if len(tools) == 0 {
		return "it has none; name some in its toolhost.yaml"
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return "it has " + named(names)
}

// errGaveUp is a third Ctrl-C: the daemon goes on to end the call.
var errGaveUp = exit.With(exit.Aborted, errors.New("not waited for any longer: the daemon ends the call"))
