package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/mcpclients"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// install is what toolhost mcp install is told.
type install struct {
	config, file, project, name string
	yes                         bool
}

func newMCPInstall() *cobra.Command {
	var i install
	cmd := &cobra.Command{
		Use: "install CLIENT", Short: "Add toolhost to the configuration file of an MCP client",
		Long: `Add toolhost to the configuration file of an MCP client. CLIENT is
` + strings.Join(mcpclients.Names(), ", ") + `.

It shows the change and asks before it writes, unless --yes is given. Everything else
in the file stays as it is, comments and order included, and the previous text is kept
beside it. Doing it again changes nothing. The client reads its file when it starts.`,
		Example: `  toolhost mcp install claude-code --config toolhost.yaml
  toolhost mcp install vscode --project . --yes`,
		Args: cmdline.Words(1, "CLIENT"), ValidArgs: mcpclients.Names(),
		RunE: func(cmd *cobra.Command, args []string) error { return i.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&i.config, "config", "", "have the client's toolhost read this `FILE`")
	cmd.Flags().StringVar(&i.file, "file", "", "change this `FILE`, not the client's usual one")
	cmd.Flags().StringVar(&i.project, "project", "", "change the file of the project in this `FOLDER`, not the user's")
	cmd.Flags().StringVar(&i.name, "name", "toolhost", "what the client calls the entry")
	cmd.Flags().BoolVar(&i.yes, "yes", false, "write without asking")
	return cmd
}

func (i *install) run(cmd *cobra.Command, name string) error {
	client, err := mcpclients.Named(name)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if i.name == "" || terminal.OneLine(i.name) != i.name {
		return exit.Usagef("--name %q must be a name without control characters", i.name)
	}
	path, err := i.path(client)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	entry, err := i.entry()
	if err != nil {
		return err
	}
	f, err := mcpclients.Read(path)
	if err != nil {
		return exit.Usagef("cannot read the file of %s: %w", client.Title, err)
	}
	text, err := client.Set(f.Text, i.name, entry)
	if err != nil {
		return exit.Usagef("cannot change %s: %w", f.Path, err)
	}
	out := cmd.OutOrStdout()
	if !f.Missing && bytes.Equal(text, f.Text) {
		fmt.Fprintf(out, "%s has it already; nothing was changed\n", f.Path)
		return nil
	}
	dir := filepath.Dir(f.Path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && i.project == "" {
		return exit.Usagef("folder %s does not exist, so %s does not seem to be installed: start it once, or name its file with --file", dir, client.Title)
	}
	fmt.Fprint(out, changes(client, i.name, f.Path, f.Text, text))
	if err := i.agreed(f.Path); err != nil {
		return err
	}
	return i.write(out, client, f, text)
}

// write makes the folder of a project's file, which may be missing; that of a user's
// file is the client's to make.
func (i *install) write(out io.Writer, client mcpclients.Client, f mcpclients.File, text []byte) error {
	if i.project != "" {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return exit.With(exit.Failed, fmt.Errorf("cannot write the file of %s: %w", client.Title, err))
		}
	}
	backup, err := f.Replace(text)
	if err != nil {
		return exit.With(exit.Failed, fmt.Errorf("cannot write the file of %s: %w", client.Title, err))
	}
	fmt.Fprintf(out, "%s is written", f.Path)
	if backup != "" {
		fmt.Fprintf(out, "; as it was before: %s", backup)
	}
	fmt.Fprintf(out, "\nStart %s anew to use it.\n", client.Title)
	return nil
}

// path is that of the file to change.
func (i *install) path(client mcpclients.Client) (string, error) {
	switch {
	case i.file != "" && i.project != "":
		return "", errors.New("--file and --project contradict one another: leave out one")
	case i.file != "":
		return filepath.Abs(i.file)
	case i.project == "":
		return client.UserFile()
	}
	dir, err := filepath.Abs(i.project)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--project %s is not a folder", i.project)
	}
	return client.ProjectFile(dir)
}

// entry starts this program, with a configuration that can be read.
func (i *install) entry() (mcpclients.Entry, error) {
	self, err := ownPath()
	if err != nil {
		return mcpclients.Entry{}, hostError(err)
	}
	loaded, err := config.Load(config.Options{Path: i.config})
	if err != nil {
		return mcpclients.Entry{}, configError(err)
	}
	if loaded.Path == "" {
		return mcpclients.Entry{}, exit.Usagef("there is no configuration to serve: name one with --config")
	}
	path, err := filepath.Abs(loaded.Path)
	if err != nil {
		return mcpclients.Entry{}, hostError(err)
	}
	return mcpclients.Entry{Command: self, Args: []string{"mcp", "--config", path}}, nil
}

// agreed asks on the terminal.
func (i *install) agreed(path string) error {
	if i.yes {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return exit.With(exit.Headless, errors.New("nothing is written, for there is no terminal to ask on: --yes writes without asking"))
	}
	defer tty.Close()
	fmt.Fprintf(tty, "Write this to %s? [y/N] ", terminal.OneLine(path))
	line, _ := bufio.NewReader(tty).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return exit.With(exit.Failed, errors.New("nothing is written"))
	}
	return nil
}
