package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/scaffold"
	"github.com/toolhost/toolhost/internal/signals"
)

func newNew() *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:   "new [flags] NAME",
		Short: "Make a new tool project",
		Long: `Make a new tool project in the new folder NAME: a typed tool, its tests, a
Makefile, a configuration snippet and a module that builds.

While no release is published, the module refers to a checkout of the SDK: that
of --sdk, else of $TOOLSDK_SDK, else the one that toolsdk or the working
directory lies in.`,
		Example: "  toolsdk new greet && cd greet && make && toolhost run ./greet name=you",
		Args:    cmdline.Words(1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return makeProject(cmd, o)
		},
	}
	cmd.Flags().StringVar(&o.SDK, "sdk", "", "`PATH` of a checkout of the SDK")
	cmd.Flags().StringVar(&o.Module, "module", "", "Go module of the project (default example.com/NAME)")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "the folder to make (default NAME)")
	cmd.Flags().BoolVar(&o.NoTidy, "no-tidy", false, "do not run go mod tidy: go.mod then names more than it needs")
	cmd.Flags().SortFlags = false
	return cmd
}

func makeProject(cmd *cobra.Command, o scaffold.Options) error {
	if err := findSDK(&o); err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), signals.NotIgnored(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	defer stop()
	p, err := scaffold.New(ctx, o)
	if ctx.Err() != nil {
		return exit.With(exit.Aborted, nil)
	}
	if err != nil {
		return usage(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "made %s: %s\n\n  cd %s && make && make test && make conformance\n", p.Dir, strings.Join(p.Files, " "), p.Dir)
	if p.Warning != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", p.Warning)
	}
	return nil
}

// released is the form of a version that a proxy has.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// findSDK settles where the project takes the SDK from, and how it finds this
// command.
func findSDK(o *scaffold.Options) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("toolsdk"); err != nil {
		o.Toolsdk = executable
	}
	if info, ok := debug.ReadBuildInfo(); ok && released.MatchString(info.Main.Version) && o.SDK == "" && os.Getenv(scaffold.SDKVar) == "" {
		o.Release = info.Main.Version
		return nil
	}
	workDir, err := os.Getwd()
	if err != nil {
		return err
	}
	o.SDK, err = scaffold.FindSDK(o.SDK, executable, workDir)
	return err
}
