package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

func newExec() *cobra.Command {
	var flags callFlags
	var raw bool
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD [ARG ...]",
		Short: "Run a plain command once, like timeout(1) but reliable",
		Long: `Run a plain command once. Its stdin, stdout, stderr and exit status pass through
byte for byte; on a terminal, control sequences other than colours are escaped, and
a job in the background gets input only when it is brought to the foreground.
With --json the result is on stdout instead, with the head and tail of both streams.
With --events stderr has the events alone, and what the command writes there in them,
as far as events hold it: 4 MiB of output, and "missed" counts the rest.

` + exitDescription,
		Example: "  toolhost exec --timeout 10s --memory 256MiB -- make test",
		Args:    cmdline.Words(cmdline.Many, "CMD"),
		RunE: func(_ *cobra.Command, argv []string) error {
			return execCommand(&flags, argv, raw)
		},
	}
	flags.register(cmd)
	flags.journal.register(cmd, false)
	flags.trace.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "escape nothing on a terminal")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func execCommand(flags *callFlags, argv []string, raw bool) error {
	if argv[0] == "" {
		return exit.Usagef("CMD is an empty word: give a command, as in: toolhost exec -- make test")
	}
	k, err := flags.openOnce()
	if err != nil {
		return err
	}
	defer k.Close()
	request := k.base()
	request.Command = &supervisor.Command{Argv: argv, Stdin: terminal.Input(os.Stdin)}
	if !flags.json {
		request.Command.Stdout = flags.passTo(os.Stdout, raw)
		if !flags.events { // which have it, and would be torn by it
			request.Command.Stderr = flags.passTo(os.Stderr, raw)
		}
	}
	shown, err := json.Marshal(map[string]any{"argv": argv})
	if err != nil {
		return exit.Usagef("cannot show the command: %w", err)
	}
	return runOne(k, turn.Tool{Name: commandName(argv[0]), Request: request, Mode: k.loaded.Default.Mode}, shown)
}

// maxCommandName is what a turn takes for the name of a tool, in bytes.
const maxCommandName = 128

// commandName is what a command goes by.
func commandName(path string) string {
	name := filepath.Base(path)
	return strings.ToValidUTF8(name[:min(len(name), maxCommandName)], "?")
}

// passTo guards a terminal; anything else gets every byte as it is.
func (f *callFlags) passTo(file *os.File, raw bool) io.Writer {
	if !terminal.IsTerminal(file) {
		return file
	}
	f.screen = cmp.Or(f.screen, &terminal.Screen{})
	if raw {
		return f.screen.Raw(file)
	}
	return f.screen.Escaping(file)
}
