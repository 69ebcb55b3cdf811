package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/mcpclients"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

const maxImportBytes = 1 << 20

func newConfig() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "config", Short: "Check, show and make toolhost.yaml",
		Long: `Check, show and make toolhost.yaml. The file is that of --config, else
$TOOLHOST_CONFIG, else toolhost/toolhost.yaml in the user's config folder, else
/etc/toolhost/toolhost.yaml; never one in the current folder unless it is named.`,
		Args: cmdline.Command, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
		Use: "validate", Short: "Report everything that is wrong with the file", Args: cmdline.Words(0),
		Annotations: map[string]string{tellsVariables: "among its warnings"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return validateConfig(cmd.OutOrStdout(), *path, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list of the problems")
	return cmd
}

func validateConfig(w io.Writer, path string, asJSON bool) error {
	loaded, err := loadChecked(path)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return exit.With(exit.Usage, err)
	}
	if asJSON || len(problems) > 0 {
		warnOfVariables(path)
	}
	if asJSON {
		if err := present.JSON(w, append(config.Problems{}, problems...), false); err != nil {
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

// loadChecked loads a file that serve would take on this machine.
func loadChecked(path string) (*config.Loaded, error) {
	loaded, err := config.Load(config.Options{Path: path})
	if err != nil {
		return nil, err
	}
	var all config.Problems
	for _, err := range []error{daemon.CheckGroups(loaded), daemon.CheckGrants(loaded, ""), daemon.CheckCertificate(loaded), checkFleetKeys(loaded), checkFleet(loaded)} {
		problems, _ := errors.AsType[config.Problems](err)
		all = append(all, problems...)
	}
	return loaded, all.Err()
}

func reportValid(w io.Writer, loaded *config.Loaded) error {
	for _, warning := range slices.Concat(loaded.Warnings, packWarnings(loaded)) {
		fmt.Fprintln(w, "warning: "+terminal.Escape(warning.Long(), false))
	}
	for _, tool := range loaded.Tools {
		for _, warning := range fleetWarnings(loaded, tool) {
			fmt.Fprintln(w, "warning: "+terminal.Escape("tools."+tool.Name+": "+warning, false))
		}
	}
	if loaded.Path == "" {
		fmt.Fprintln(w, "no file: everything has its default")
		return nil
	}
	if len(loaded.Tools) == 0 {
		fmt.Fprintln(w, "warning: the file has no tools: none can be called by it; add them below tools")
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
		Use: "show", Short: "Print all settings in force, and where each value comes from", Args: cmdline.Words(0),
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
		Use: "schema", Short: "Print the JSON Schema of the file, for editors", Args: cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}

func newConfigImport() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE|CLIENT", Short: "Turn the MCP servers of another program into a toolhost.yaml on stdout",
		Long: `Turn the MCP servers of another program into a toolhost.yaml on stdout. FILE is
that program's configuration, in JSON or, if it is named so, TOML, or - for stdin; for
CLIENT (` + strings.Join(mcpclients.Names(), ", ") + `)
it is the user's own. What needs attention is on stderr, and in comments.`,
		Example: "  toolhost config import ~/.config/Claude/claude_desktop_config.json > toolhost.yaml\n  toolhost config import codex > toolhost.yaml",
		Args:    cmdline.Words(1, "FILE"), ValidArgs: mcpclients.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			yaml, warnings, err := importOf(args[0])
			if err != nil {
				return err
			}
			for _, warning := range warnings {
				fmt.Fprintln(os.Stderr, "toolhost: warning: "+terminal.OneLine(warning))
			}
			_, err = cmd.OutOrStdout().Write(yaml)
			return err
		},
	}
}

// importOf imports a file, or the one of a client.
func importOf(word string) (yaml []byte, warnings []string, err error) {
	client, err := mcpclients.Named(word)
	path, take := word, client.Import
	var text []byte
	if info, missing := os.Stat(word); err != nil || missing == nil && info.Mode().IsRegular() {
		if text, err = readBounded(word, maxImportBytes); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, exit.Usagef("%s is neither a file nor a client: clients are %s", word, strings.Join(mcpclients.Names(), ", "))
		} else if err != nil {
			return nil, nil, exit.Usagef("cannot read %s: %w", word, err)
		}
		take = mcpclients.Import
		if filepath.Ext(word) == ".toml" {
			codex, _ := mcpclients.Named("codex")
			take = codex.Import
		}
	} else if path, text, err = userText(client); err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	if yaml, warnings, err = take(text); err != nil {
		return nil, nil, exit.Usagef("cannot import %s: %w", path, err)
	}
	return yaml, warnings, nil
}

// userText is the user's file of a client.
func userText(client mcpclients.Client) (path string, text []byte, err error) {
	if path, err = client.UserFile(); err != nil {
		return "", nil, err
	}
	f, err := mcpclients.Read(path)
	switch {
	case err != nil:
		return path, nil, fmt.Errorf("cannot read the file of %s: %w", client.Title, err)
	case f.Missing:
		return path, nil, fmt.Errorf("%s has no file %s: name the one that it has", client.Title, path)
	}
	return path, f.Text, nil
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

// loadFor loads the configuration for what of it a command needs, the settings below
// these keys: a mistake elsewhere is told, and not in the way. flag is how to do without.
func loadFor(o config.Options, flag string, keys ...string) (*config.Loaded, error) {
	loaded, err := config.Load(o)
	problems, ok := errors.AsType[config.Problems](err)
	if !ok && err != nil {
		return nil, configError(err)
	}
	if problems.Concern(keys...) {
		return nil, exit.With(exit.Usage, errors.Join(configError(err), fmt.Errorf("mend the configuration, or do without it with %s", flag)))
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "toolhost: warning: "+terminal.OneLine(problem.String()))
	}
	return loaded, nil
}
