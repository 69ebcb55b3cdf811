package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/terminal"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn/format"
)

func newTools() *cobra.Command {
	var asJSON bool
	var name string
	cmd := &cobra.Command{
		Use: "tools PLUGIN ...", Short: "Describe the tools in plugin binaries", Args: cobra.MinimumNArgs(1),
		Example: "  toolhost tools ./bin/search\n  toolhost tools --json bin/*\n  toolhost tools --format anthropic bin/search",
		RunE: func(cmd *cobra.Command, paths []string) error {
			infos, err := describeTools(paths)
			switch {
			case err != nil:
				return err
			case name != "":
				return exportTools(cmd.OutOrStdout(), infos, name)
			case asJSON:
				return toolsJSON(cmd.OutOrStdout(), infos)
			}
			return printTools(cmd.OutOrStdout(), infos)
		},
	}
	cmd.Flags().StringVar(&name, "format", "", "print them as a model API takes them: "+strings.Join(format.Names(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with whole schemas")
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

func describeTools(paths []string) ([]toolInfo, error) {
	host, err := newHost(nil)
	if err != nil {
		return nil, err
	}
	defer host.Close()
	infos := []toolInfo{}
	for _, path := range paths {
		description, failed := host.Describe(context.Background(), supervisor.Request{Tool: supervisor.Tool{Path: path}})
		if failed != nil {
			return nil, resultError(failed)
		}
		for _, tool := range description.Tools {
			infos = append(infos, infoOf(path, description, tool))
		}
	}
	return infos, nil
}

func toolsJSON(w io.Writer, infos []toolInfo) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(infos)
}

// exportTools prints them for a model API.
func exportTools(w io.Writer, infos []toolInfo, name string) error {
	provider, err := format.Lookup(name)
	if err != nil {
		return usageError("%w", err)
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
		return usageError("%w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
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

func claimsOf(tool *pluginv1.ToolDescription) []string {
	a := tool.GetAnnotations()
	claims := []string{}
	for _, c := range []struct {
		name string
		on   bool
	}{
		{"read-only", a.GetReadOnly()},
		{"idempotent", a.GetIdempotent()},
		{"destructive", a.GetDestructive()},
		{"exclusive", tool.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE},
	} {
		if c.on {
			claims = append(claims, c.name)
		}
	}
	return claims
}

func printTools(w io.Writer, infos []toolInfo) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "TOOL\tARGUMENTS\tCLAIMS\tDESCRIPTION")
	for _, info := range infos {
		line := []string{info.Name, strings.Join(parameters(info.InputSchema), " "), strings.Join(info.Claims, ","), firstLine(info.Description)}
		for i, cell := range line {
			if line[i] = terminal.Escape(cell, false); cell == "" {
				line[i] = "-"
			}
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
	for name := range propertyTypes(schema) {
		if !required[name] {
			name = "[" + name + "]"
		}
		out = append(out, name)
	}
	return sorted(out)
}
