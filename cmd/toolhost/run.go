package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

func newRun() *cobra.Command {
	var flags callFlags
	var args string
	cmd := &cobra.Command{
		Use:   "run [flags] TOOL [key=value ...]",
		Short: "Call a tool once",
		Long: `Call a tool once. TOOL is a plugin's path, or PATH:NAME where it has several
tools. A value of key=value is read as the type that the tool's schema gives it;
a list is given by repeating its key.

` + exitDescription,
		Example: "  toolhost run --timeout 5s ./bin/search pattern=TODO path=.\n  toolhost run --json ./bin/search --args '{\"pattern\":\"TODO\"}'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, words []string) error {
			return runTool(&flags, words[0], words[1:], args)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&args, "args", "", "whole arguments as a `JSON` object, or - to read them from stdin")
	return cmd
}

func runTool(flags *callFlags, tool string, words []string, args string) error {
	request, err := flags.request()
	if err != nil {
		return err
	}
	request.Tool = splitTool(tool)
	if args != "" && len(words) > 0 {
		return usageError("give either --args or key=value words, not both")
	}
	host, err := newHost(flags)
	if err != nil {
		return err
	}
	defer host.Close()
	if request.Arguments, err = arguments(host, request, words, args); err != nil {
		return err
	}
	offered := turn.Tool{Name: cmp.Or(request.Tool.Name, filepath.Base(request.Tool.Path)), Destructive: destructive(host, request)}
	result, err := flags.gated(host, request, offered, runView{})
	if err != nil {
		return err
	}
	return finishCall(result, flags, false)
}

// destructive is the tool's own explicit claim. A tool that cannot be described
// is not called at all.
func destructive(host *supervisor.Supervisor, request supervisor.Request) bool {
	description, failed := host.Describe(context.Background(), request)
	if failed != nil {
		return false
	}
	return pick(description.Tools, request.Tool.Name).GetAnnotations().GetDestructive()
}

// splitTool takes PATH:NAME apart, unless a file has the whole name.
func splitTool(s string) supervisor.Tool {
	if _, err := os.Stat(s); err != nil {
		if i := strings.LastIndex(s, ":"); i > 0 {
			return supervisor.Tool{Path: s[:i], Name: s[i+1:]}
		}
	}
	return supervisor.Tool{Path: s}
}

func arguments(host *supervisor.Supervisor, request supervisor.Request, words []string, args string) (json.RawMessage, error) {
	if args != "" {
		return readArguments(args)
	}
	if len(words) == 0 {
		return json.RawMessage("{}"), nil
	}
	description, failed := host.Describe(context.Background(), request)
	if failed != nil {
		return nil, resultError(failed)
	}
	return pairArguments(words, pick(description.Tools, request.Tool.Name))
}

// pick finds the tool whose types key=value words are read by; the supervisor
// complains where there is none.
func pick(tools []*pluginv1.ToolDescription, name string) *pluginv1.ToolDescription {
	if name == "" && len(tools) == 1 {
		return tools[0]
	}
	i := slices.IndexFunc(tools, func(t *pluginv1.ToolDescription) bool { return t.GetName() == name })
	if i < 0 {
		return nil
	}
	return tools[i]
}

// newHost makes the supervisor of a one-shot command.
func newHost(flags *callFlags) (*supervisor.Supervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, hostError(err)
	}
	config := supervisor.Config{Adapter: self}
	if flags != nil {
		config.SpillDir, config.CgroupParent = flags.spill, flags.cgroupParent
	}
	host, err := supervisor.New(context.Background(), config)
	if err != nil {
		return nil, hostError(err)
	}
	return host, nil
}

// resultError is a failed call as a one-line error with its exit code.
func resultError(r *supervisor.Result) error {
	text := string(r.Status)
	if r.ToolError != nil {
		text = r.ToolError.Message
	}
	return &exitError{exitCode(r, false), errors.New(firstLine(text))}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
