package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/cli/toolrun"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
)

func newDescribe() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe BINARY|PACK",
		Short: "Show what a binary says of its tools",
		Long: `Show what a binary says of its tools: arguments, result, claims, hints, and what
they wish to be granted. It is asked as by a host, in a sandbox with nothing
granted.`,
		Example: "  toolsdk describe ./greet",
		Args:    cmdline.Words(1, "BINARY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTarget(args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			d, err := t.describe(cmd)
			if err != nil {
				return err
			}
			out := toolrun.NewDescription(args[0], d)
			if t.opened != nil {
				out.PackVersion, out.ManifestSHA256 = t.opened.Manifest.Version, t.opened.ManifestSHA256
			}
			if asJSON {
				return out.WriteJSON(terminal.JSON(cmd.OutOrStdout()))
			}
			return out.WriteText(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with whole schemas")
	return cmd
}

// describe asks a binary, or that of a pack, in the sandbox.
func describe(cmd *cobra.Command, path string) (*supervisor.Description, error) {
	t, err := openTarget(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.describe(cmd)
}

func (t *target) describe(cmd *cobra.Command) (*supervisor.Description, error) {
	host, err := newHost()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	return describeFor(cmd, host, supervisor.Request{Tool: t.tool, SHA256: t.sha256})
}

// describeFor asks a binary with what a call would have.
func describeFor(cmd *cobra.Command, host *supervisor.Supervisor, request supervisor.Request) (*supervisor.Description, error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), signals.NotIgnored(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	defer stop()
	d, failed := host.Describe(ctx, request)
	if ctx.Err() != nil {
		return nil, exit.With(exit.Aborted, nil)
	}
	if failed != nil {
		return nil, exit.With(exitCode(failed), errors.New(present.Problem(failed)))
	}
	return d, nil
}
