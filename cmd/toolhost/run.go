package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

func newRun() *cobra.Command {
	var flags callFlags
	var args string
	cmd := &cobra.Command{
		Use:   "run [flags] TOOL [key=value ...]",
		Short: "Call a tool once",
		Long: `Call a tool once. TOOL is a plugin's path, or PATH:NAME where it has several
tools, or the name of one in toolhost.yaml. A value of key=value is read as the
type that the tool's schema gives it; a list is given by repeating its key.

` + exitDescription,
		Example: "  toolhost run --timeout 5s ./bin/search pattern=TODO path=.\n  toolhost run --json ./bin/search --args '{\"pattern\":\"TODO\"}'",
		Args:    cmdline.Words(cmdline.Many, "TOOL"),
		RunE: func(_ *cobra.Command, words []string) error {
			return runTool(&flags, words[0], words[1:], args)
		},
	}
	flags.register(cmd)
	flags.journal.register(cmd, false)
	flags.trace.register(cmd)
	cmd.Flags().StringVar(&args, "args", "", "whole arguments as a `JSON` object, or - to read them from stdin")
	return cmd
}

func runTool(flags *callFlags, word string, words []string, args string) error {
	k, err := flags.openOnce()
	if err != nil {
		return err
	}
	defer k.Close()
	k.tells = true
	tool, err := k.callable(context.Background(), word)
	flags.trace.mark("find")
	if unknown, ok := errors.AsType[*catalog.DescribeError](err); ok {
		return finishCall(unknown.Result, flags, false)
	}
	if err != nil {
		return toolError(err)
	}
	raw, err := callargs.Of(words, args, os.Stdin, tool.Description.GetInputSchema())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	return runOne(k, tool.Tool, raw)
}

// callable is find, but for a tool that the operator has asked about where nobody
// is there to ask: nothing of it is run.
func (k *app) callable(ctx context.Context, word string) (catalog.Tool, error) {
	tool, configured := k.catalog.Offered(word)
	if !configured && (strings.Contains(word, "/") || k.found(word)) {
		tool = turn.Tool{Name: filepath.Base(splitTool(word).Path), Mode: k.loaded.Default.Mode}
	}
	if tool.Mode != turn.ModeAsk || !k.flags.headless && terminal.Present() {
		return k.find(ctx, word)
	}
	tool.Describe = nil
	return catalog.Tool{Tool: tool}, nil
}

// toolError is a usage error, if it has no exit code of its own.
func toolError(err error) error {
	if _, ok := errors.AsType[*exit.Error](err); ok {
		return err
	}
	return exit.With(exit.Usage, err)
}

// runOne makes the one call of run or exec and tells what came of it.
func runOne(k *app, tool turn.Tool, arguments json.RawMessage) error {
	command := tool.Request.Command != nil && tool.Request.Command.Tool == nil
	s := session{
		app: k, tools: map[string]turn.Tool{tool.Name: tool}, single: true, passes: command,
		calls: []turn.Call{{ID: rand.Text(), Tool: tool.Name, Arguments: arguments}},
	}
	if err := k.flags.trace.create(); err != nil {
		return err
	}
	results, err := s.run()
	if len(results) == 0 {
		return err
	}
	if finished := finishCall(results[0], k.flags, command); err == nil {
		err = finished
	}
	if traced := k.flags.trace.finish(results[0], k.flags); err == nil {
		err = traced
	}
	return err
}

// resultError is a failed call as a one-line error with its exit code.
func resultError(r *api.Result) error {
	text := string(r.Status)
	if r.ToolError != nil {
		text = present.Problem(r)
	}
	return exit.With(exitCode(r, false), errors.New(text))
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
