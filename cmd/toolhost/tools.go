package main

import (
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
)

func newTools() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tools PLUGIN ...", Short: "Describe the tools in plugin binaries", Args: cobra.MinimumNArgs(1),
		Example: "  toolhost tools ./bin/search\n  toolhost tools --json bin/*",
		RunE: func(cmd *cobra.Command, paths []string) error {
			return describeTools(cmd.OutOrStdout(), paths, asJSON)
		},
	}
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
}

func describeTools(w io.Writer, paths []string, asJSON bool) error {
	host, err := newHost(nil)
	if err != nil {
		return err
	}
	defer host.Close()
	infos := []toolInfo{}
	for _, path := range paths {
		description, failed := host.Describe(context.Background(), supervisor.Request{Tool: supervisor.Tool{Path: path}})
		if failed != nil {
			return resultError(failed)
		}
		for _, tool := range description.Tools {
			infos = append(infos, infoOf(path, description, tool))
		}
	}
	if asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(infos)
	}
	return printTools(w, infos)
}

func infoOf(path string, d *supervisor.Description, tool *pluginv1.ToolDescription) toolInfo {
	return toolInfo{
		Plugin: path, SHA256: d.SHA256, Version: d.Version,
		Name: tool.GetName(), Title: tool.GetTitle(), Description: tool.GetDescription(),
		InputSchema: tool.GetInputSchema(), OutputSchema: tool.GetOutputSchema(), Claims: claimsOf(tool),
		TimeoutMs: tool.GetTimeouts().GetTimeoutMs(), TimeoutArgument: tool.GetTimeoutArgument(),
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
