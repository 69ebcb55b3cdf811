package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/manual"
)

// newManual is for those who make packages.
func newManual() *cobra.Command {
	var reference string
	cmd := &cobra.Command{
		Use: "manual DIR", Short: "Write the man pages into a folder", Args: cmdline.Words(1, "DIR"), Hidden: true,
		Long: "Write the man pages into a folder. Their date is that of $SOURCE_DATE_EPOCH.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(args[0], reference, cmd.Root()); err != nil {
				return hostError(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reference, "reference", "", "make toolhost.yaml(5) of this `FILE`, which is docs/config.md")
	return cmd
}

func writeManual(dir, reference string, root *cobra.Command) error {
	seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	o := manual.Options{
		Version: readVersion().Version, Date: time.Unix(seconds, 0), Manual: "toolhost manual",
		Files: [][2]string{
			{"/etc/toolhost/toolhost.yaml", "The configuration of root, and of users without one of their own."},
			{"~/.config/toolhost/toolhost.yaml", "A user's own configuration."},
			{"/run/toolhost/toolhost.sock", "The socket of root's daemon; a user's is $XDG_RUNTIME_DIR/toolhost/toolhost.sock."},
			{"/var/lib/toolhost", "Root's journal, data of tools, and the token of clients on TCP; a user's is ~/.local/state/toolhost."},
		},
	}
	if err := manual.Commands(dir, root, o); err != nil || reference == "" {
		return err
	}
	text, err := os.ReadFile(reference)
	if err != nil {
		return err
	}
	return manual.Markdown(dir, "toolhost.yaml", "5", "tools, limits and timeouts of toolhost", string(text), o)
}
