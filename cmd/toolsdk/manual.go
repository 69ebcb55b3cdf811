package main

import (
	"cmp"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/manual"
)

// release is set by the linker where a package is built: -X main.release=1.2.3.
var release string

// newManual is for those who make packages.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Short: "Write the man pages into a folder", Args: cmdline.Words(1, "DIR"), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			var built debug.BuildInfo
			if info, ok := debug.ReadBuildInfo(); ok {
				built = *info
			}
			o := manual.Options{Version: cmp.Or(release, built.Main.Version), Date: time.Unix(seconds, 0), Manual: "toolhost manual"}
			if err := manual.Commands(args[0], cmd.Root(), o); err != nil {
				return exit.With(exit.Host, err)
			}
			return nil
		},
	}
}
