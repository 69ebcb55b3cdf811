package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
	"github.com/toolhost/toolhost/turn/format"
)

func newTools() *cobra.Command {
	var asJSON, noCgroup, diff, accept bool
	var name, path, state string
	cmd := &cobra.Command{
		Use: "tools [PLUGIN|NAME ...]", Short: "Describe the tools in plugin binaries, or those of the configuration",
		Example: "  toolhost tools\n  toolhost tools --format openai NAME\n  toolhost tools ./bin/search\n  toolhost tools --json bin/*\n  toolhost tools --format anthropic bin/search\n  toolhost tools --diff files\n  toolhost tools --accept files",
		RunE: func(cmd *cobra.Command, paths []string) error {
			if diff || accept {
				if name != "" || asJSON {
					return exit.Usagef("--diff and --accept print no tools: leave out --format and --json")
				}
				flags := configured(path)
				flags.noCgroup, flags.journal.state = noCgroup, state
				return reviewPins(cmd.OutOrStdout(), flags, paths, accept)
			}
			infos, problems := describeTools(path, noCgroup, paths)
			if infos == nil && problems != nil {
				return problems
			}
			var err error
			switch {
			case name != "":
				err = exportTools(cmd.OutOrStdout(), infos, name)
			case asJSON:
				err = present.JSON(cmd.OutOrStdout(), infos, true)
			default:
				err = printTools(cmd.OutOrStdout(), infos)
			}
			if err != nil {
				return err
			}
			return problems
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "read this toolhost.yaml (see toolhost config)")
	cmd.Flags().StringVar(&name, "format", "", "print the tools in the form of a model API: "+strings.Join(format.Names(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with whole schemas")
	cmd.Flags().BoolVar(&diff, "diff", false, "show how the tools of MCP servers differ from what was accepted; exit status 1 if they do")
	cmd.Flags().BoolVar(&accept, "accept", false, "accept the tools of MCP servers as they are now, and show the difference")
	cmd.Flags().StringVar(&state, "state", "", "state folder `DIR` with what was accepted, for --diff and --accept (default that of the configuration)")
	cmd.Flags().BoolVar(&noCgroup, noCgroupFlag, false, noCgroupUsage)
	return cmd
}

// toolInfo is the JSON form of a description.
type toolInfo struct {
	Plugin          string          `json:"plugin"`
	SHA256          string          `json:"sha256"`
	Version         string          `json:"version"`
	Name            string          `json:"name"`
	Title           string          `json:"title,omitempty"`
	Description     string          `json:"description,omitempty"`
	InputSchema     json.RawMessage `json:"inputSchema"`
	OutputSchema    json.RawMessage `json:"outputSchema,omitempty"`
	Claims          []string        `json:"claims"`
	TimeoutMs       int64           `json:"timeoutMs,omitempty"`
	TimeoutArgument string          `json:"timeoutArgument,omitempty"`

	annotations *pluginv1.Annotations
}

// describeTools describes what it can; the error says what else there would be.
func describeTools(file string, noCgroup bool, paths []string) ([]toolInfo, error) {
	flags := configured(file)
	flags.noCgroup = noCgroup
	k, err := flags.open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	if len(paths) == 0 {
		return k.describeConfigured()
	}
	infos, problems := []toolInfo{}, []error{}
	for _, path := range paths {
		some, err := k.describe(path)
		infos, problems = append(infos, some...), append(problems, err)
	}
	return infos, errors.Join(problems...)
}

// describe describes what a name of the configuration stands for, else a plugin.
func (k *app) describe(word string) ([]toolInfo, error) {
	if !strings.Contains(word, "/") {
		infos, err := k.describeNamed(word)
		if err == nil {
			return infos, nil
		}
		if _, none := errors.AsType[*catalog.NotFoundError](err); !none {
			return infos, exit.With(exit.Failed, err)
		}
	}
	if k.loaded.Default.Mode == turn.ModeDeny {
		return nil, exit.With(exit.Failed, fmt.Errorf("%s is not run to be described: mode is deny (%s); allow it there", word, source(k.loaded.Default, "mode")))
	}
	request, err := k.request(supervisor.Tool{Path: word})
	if err != nil {
		return nil, err
	}
	description, failed := k.host.Describe(context.Background(), request)
	if failed != nil {
		return nil, resultError(failed)
	}
	var infos []toolInfo
	for _, tool := range description.Tools {
		infos = append(infos, infoOf(word, description, tool))
	}
	return infos, nil
}

// describeNamed describes a configured tool, or all of a server. An error may be
// a *catalog.NotFoundError.
func (k *app) describeNamed(name string) ([]toolInfo, error) {
	tools, err := k.catalog.Server(context.Background(), name)
	if _, none := errors.AsType[*catalog.NotFoundError](err); none {
		var tool catalog.Tool
		tool, err = k.catalog.Find(context.Background(), name)
		tools = []catalog.Tool{tool}
	}
	if err != nil {
		return nil, err
	}
	var infos []toolInfo
	var held []error
	for _, t := range tools {
		if t.Held != "" {
			held = append(held, &catalog.HeldError{Tool: t})
			continue
		}
		infos = append(infos, configuredInfo(t))
	}
	return infos, errors.Join(held...)
}

func configuredInfo(t catalog.Tool) toolInfo {
	return infoOf(t.Entry.Source.String(), &supervisor.Description{Version: t.Version, SHA256: t.SHA256}, t.Description)
}

func (k *app) describeConfigured() ([]toolInfo, error) {
	if k.loaded.Path == "" {
		return nil, exit.Usagef("cannot list tools of a toolhost.yaml (%s): name plugins, or a file with --config", noFile())
	}
	k.tells = true
	tools, problems := k.catalog.All(context.Background())
	infos := []toolInfo{}
	for _, t := range tools {
		infos = append(infos, configuredInfo(t))
	}
	if len(problems) > 0 {
		return infos, exit.With(exit.Failed, errors.Join(problems...))
	}
	return infos, nil
}

// exportTools prints them for a model API.
func exportTools(w io.Writer, infos []toolInfo, name string) error {
	provider, err := format.Lookup(name)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	var tools []format.Tool
	for _, i := range infos {
		a := i.annotations
		tools = append(tools, format.Tool{
			Name: i.Name, Title: i.Title, Description: i.Description, InputSchema: i.InputSchema, OutputSchema: i.OutputSchema,
			ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld,
		})
	}
	raw, err := provider.Tools(tools)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	return present.Raw(w, raw)
}

func infoOf(path string, d *supervisor.Description, tool *pluginv1.ToolDescription) toolInfo {
	return toolInfo{
		Plugin: path, SHA256: d.SHA256, Version: d.Version,
		Name: tool.GetName(), Title: tool.GetTitle(), Description: tool.GetDescription(),
		InputSchema: tool.GetInputSchema(), OutputSchema: tool.GetOutputSchema(), Claims: claimsOf(tool),
		TimeoutMs: tool.GetTimeouts().GetTimeoutMs(), TimeoutArgument: tool.GetTimeoutArgument(),
		annotations: cmp.Or(tool.GetAnnotations(), &pluginv1.Annotations{}),
	}
}

// claimsOf are the claims that change how calls are made.
func claimsOf(tool *pluginv1.ToolDescription) []string {
	claims := []string{}
	for _, claim := range host.Claims(tool.GetAnnotations(), tool.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE) {
		if !slices.Contains([]string{"additive", "open-world", "closed-world"}, claim) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// maxCellRunes bounds what a table shows of a description: its first line may be
// all that there is.
const maxCellRunes = 500

func printTools(w io.Writer, infos []toolInfo) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "TOOL\tARGUMENTS\tCLAIMS\tDESCRIPTION")
	for _, info := range infos {
		line := []string{info.Name, strings.Join(parameters(info.InputSchema), " "), strings.Join(info.Claims, ","), text.FirstLine(info.Description)}
		for i, cell := range line {
			line[i] = cmp.Or(terminal.Cell(text.Cut(cell, maxCellRunes)), "-")
		}
		fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	return table.Flush()
}

// parameters lists a schema's properties, those that are optional in brackets.
func parameters(schema json.RawMessage) []string {
	var s struct {
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(schema, &s)
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	var out []string
	for name := range callargs.Types(schema) {
		if !required[name] {
			name = "[" + name + "]"
		}
		out = append(out, name)
	}
	return sorted(out)
}
