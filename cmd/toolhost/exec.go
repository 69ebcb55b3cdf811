package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

func newExec() *cobra.Command {
	var flags callFlags
	var raw bool
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD [ARG ...]",
		Short: "Run a plain command once: what timeout(1) should have been",
		Long: `Run a plain command once. Its stdin, stdout, stderr and exit status pass through
byte for byte; on a terminal, control sequences but colours are escaped. With
--json the result is on stdout instead, with the head and tail of both streams.

` + exitDescription,
		Example: "  toolhost exec --timeout 10s --memory 256MiB -- make test",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, argv []string) error {
			return execCommand(&flags, argv, raw)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "escape nothing on a terminal")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func execCommand(flags *callFlags, argv []string, raw bool) error {
	request, err := flags.request()
	if err != nil {
		return err
	}
	host, err := newHost(flags)
	if err != nil {
		return err
	}
	defer host.Close()
	request.Command = &supervisor.Command{Argv: argv, Stdin: os.Stdin}
	if !flags.json {
		request.Command.Stdout = passTo(os.Stdout, raw)
		request.Command.Stderr = passTo(os.Stderr, raw)
	}
	result, err := flags.gated(host, request, turn.Tool{Name: argv[0]}, runView{command: true})
	if err != nil {
		return err
	}
	return finishCall(result, flags, true)
}

// passTo guards a terminal; anything else gets every byte as it is.
func passTo(f *os.File, raw bool) io.Writer {
	if raw || !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return terminal.EscapingWriter{W: f}
}
