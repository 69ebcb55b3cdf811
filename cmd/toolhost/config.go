package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/callargs"
	"github.com/toolhost/toolhost/internal/config"
	"github.com/toolhost/toolhost/internal/daemon"
	"github.com/toolhost/toolhost/internal/exit"
	"github.com/toolhost/toolhost/internal/terminal"
)

const maxImportBytes = 1 << 20

func newConfig() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "config", Short: "Check, show and make toolhost.yaml",
		Long: `Check, show and make toolhost.yaml. The file is that of --config, else
$TOOLHOST_CONFIG, else toolhost/toolhost.yaml in the user's config folder, else
/etc/toolhost/toolhost.yaml; never one in the current folder unless it is named.`,
		Args: callargs.Command, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&path, "config", "", "read this `FILE`")
	cmd.AddCommand(
		newConfigValidate(&path), newConfigShow(&path), newConfigSchema(), newConfigImport(),
	)
	return cmd
}

func newConfigValidate(path *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "validate", Short: "Report everything that is wrong with the file", Args: callargs.Words(0),
		Annotations: map[string]string{tellsVariables: "among its warnings"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return validateConfig(cmd.OutOrStdout(), *path, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list of the problems")
	return cmd
}

func validateConfig(w io.Writer, path string, asJSON bool) error {
	loaded, err := config.Load(config.Options{Path: path})
	if err == nil {
		err = daemon.CheckGrants(loaded, "")
	}
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return exit.With(exit.Usage, err)
	}
	if asJSON || len(problems) > 0 {
		warnOfVariables(path)
	}
	if asJSON {
		if err := printJSON(w, append(config.Problems{}, problems...), false); err != nil {
			return err
		}
		if len(problems) > 0 {
			return exit.With(exit.Usage, nil)
		}
		return nil
	}
	if len(problems) > 0 {
		fmt.Fprintln(w, terminal.Escape(problems.Long(), false))
		return exit.Usagef("%s", plural(len(problems), "problem"))
	}
	return reportValid(w, loaded)
}

func reportValid(w io.Writer, loaded *config.Loaded) error {
	for _, warning := range loaded.Warnings {
		fmt.Fprintln(w, "warning: "+terminal.Escape(warning.Long(), false))
	}
	if loaded.Path == "" {
		fmt.Fprintln(w, "no file: everything has its default")
		return nil
	}
	fmt.Fprintf(w, "%s is valid: %s\n", terminal.OneLine(loaded.Path), plural(len(loaded.Tools), "tool"))
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func newConfigShow(path *string) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print all that is in force, and where each value comes from", Args: callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := config.Load(config.Options{Path: *path})
			if err != nil {
				return configError(err)
			}
			_, err = cmd.OutOrStdout().Write(loaded.Show())
			return err
		},
	}
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the file, for editors", Args: callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}

func newConfigImport() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Turn another program's mcpServers JSON into a toolhost.yaml on stdout",
		Long: `Turn another program's mcpServers JSON into a toolhost.yaml on stdout; FILE may
be - for stdin. What has to be seen to is on stderr, and in comments.`,
		Example: "  toolhost config import ~/.config/Claude/claude_desktop_config.json > toolhost.yaml",
		Args:    callargs.Words(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readBounded(args[0], maxImportBytes)
			if err != nil {
				return exit.Usagef("cannot read %s: %w", args[0], err)
			}
			yaml, warnings, err := config.Import(raw)
			if err != nil {
				return exit.Usagef("%s: %w", args[0], err)
			}
			for _, warning := range warnings {
				fmt.Fprintln(os.Stderr, "toolhost: warning: "+terminal.OneLine(warning))
			}
			_, err = cmd.OutOrStdout().Write(yaml)
			return err
		},
	}
}

// configError is a usage error: everything that is wrong, a line each.
func configError(err error) error {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return exit.With(exit.Usage, err)
	}
	var list []error
	for _, problem := range problems {
		list = append(list, errors.New(problem.String()))
	}
	return exit.With(exit.Usage, errors.Join(list...))
}
