package main

import (
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/adapter"
)

// newAdapter is started by the supervisor, never by people.
func newAdapter() *cobra.Command {
	parent := &cobra.Command{Use: "adapter", Hidden: true, Short: "Adapters, started by a supervisor"}
	parent.AddCommand(&cobra.Command{
		Use: "command -- CMD [ARG ...]", Short: "Run a plain command as a tool", DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			adapter.ServeCommand(args)
		},
	})
	return parent
}
