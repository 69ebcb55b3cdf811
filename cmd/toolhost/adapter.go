package main

import (
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/tools/adapter/mcp"
)

// newAdapter is started by the supervisor, never by people.
func newAdapter() *cobra.Command {
	parent := &cobra.Command{Use: "adapter", Hidden: true, Short: "Adapters, started by a supervisor"}
	parent.AddCommand(newMCPAdapter())
	return parent
}

func newMCPAdapter() *cobra.Command {
	options := mcp.Options{Version: readVersion().Version}
	cmd := &cobra.Command{
		Use: "mcp [flags] -- SERVER [ARG ...]", Short: "Run the tools of an MCP server",
		Run: func(_ *cobra.Command, args []string) { mcp.Serve(options, args) },
	}
	cmd.Flags().StringVar(&options.Name, "name", "", "what errors call the server (default its command)")
	cmdline.DurationVar(cmd.Flags(), &options.StartTimeout, "start-timeout", mcp.DefaultStartTimeout, "bound of the server's start, and of its list of tools")
	cmd.Flags().StringArrayVar(&options.Roots, "root", nil, "a folder to name when the server asks for roots")
	return cmd
}
