package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/config"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke tokens for clients of the daemon on TCP",
		Long: `Make, list and revoke tokens for clients of the daemon on TCP. The daemon's state folder
keeps their hashes: run this as the daemon's user, or as root. A running daemon takes
up each change at once.

Roles: call begins turns and makes calls in them, and sees its own; watch sees
everything; approve answers questions about others' calls; admin may do everything;
metrics may read the metrics, and nothing else.`,
		Args: cmdline.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

// tokenFlags say where the tokens are.
type tokenFlags struct {
	state, config string
}

func (f *tokenFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.state, "state", "", daemonStateUsage)
	cmd.Flags().StringVar(&f.config, "config", "", "read this toolhost.yaml (see toolhost config)")
}

func (f *tokenFlags) open() (*tokens.Store, error) {
	where := journalFlags{state: f.state, byDefault: true}
	if f.state == "" {
		loaded, err := loadFor(config.Options{Path: f.config}, "--state", "state")
		if err != nil {
			return nil, err
		}
		where.configured = loaded
	}
	dir, err := where.dir()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, exit.Usagef("tokens are kept in the daemon's state folder, and it has none: name one with --state")
	}
	return tokens.Open(dir), nil
}

func newTokenCreate() *cobra.Command {
	var flags tokenFlags
	var roles, tools []string
	var life time.Duration
	var forever bool
	cmd := &cobra.Command{
		Use: "create [flags] NAME", Short: "Make a token and print it, once",
		Long: `Make a token and print it, once: it is not kept anywhere. NAME says who it is for, and
stands in the record of all that is done with it; an entry of access in toolhost.yaml
with the same name applies to it too.`,
		Example: "  toolhost token create ci --role call --tools 'git_*,fs_read'\n  toolhost token create oncall --role watch,approve --expires 12h",
		Args:    cmdline.Words(1, "NAME"),
		RunE: func(cmd *cobra.Command, names []string) error {
			spec := tokens.Spec{Name: names[0], Tools: tools, Life: life, By: thisUser()}
			var err error
			if spec.Roles, err = access.ParseRoles(roles); err != nil {
				return exit.With(exit.Usage, err)
			}
			for _, pattern := range tools {
				if wrong := access.CheckPattern(pattern); wrong != "" {
					return exit.Usagef("--tools %q %s", pattern, wrong)
				}
			}
			if forever && cmd.Flags().Changed("expires") {
				return exit.Usagef("--forever and --expires contradict one another: leave one of them out")
			}
			if life <= 0 && !forever {
				return exit.Usagef("--expires %s is not positive: give a duration such as 720h, or --forever", life)
			}
			if forever {
				spec.Life = 0
			}
			return flags.create(cmd, spec)
		},
	}
	cmd.Flags().StringSliceVar(&roles, "role", []string{string(access.Call)}, "`ROLE`s: call, watch, approve, admin, metrics")
	cmd.Flags().StringSliceVar(&tools, "tools", nil, "`PATTERN`s of the tools that it may see and call (default all)")
	cmdline.DurationVar(cmd.Flags(), &life, "expires", 90*24*time.Hour, "how long it is valid")
	cmd.Flags().BoolVar(&forever, "forever", false, "it never expires")
	flags.register(cmd)
	return cmd
}

func (f *tokenFlags) create(cmd *cobra.Command, spec tokens.Spec) error {
	store, err := f.open()
	if err != nil {
		return err
	}
	if err := tokens.CheckName(spec.Name); err != nil {
		return exit.With(exit.Usage, err)
	}
	signals.OutliveReader()
	secret, made, err := store.Create(spec)
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), secret); err != nil {
		return takeBack(store, made, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "token %s (%s), %s: it is shown this once\n", made.Name, access.NamesOf(made.Roles, ","), expiry(made))
	return nil
}

// takeBack revokes a token that could not be printed: it is valid, and nobody knows it.
func takeBack(store *tokens.Store, made tokens.Token, lost error) error {
	if _, err := store.Revoke(made.ID, thisUser()); err != nil {
		return exit.With(exit.Host, fmt.Errorf("%w; token %s is valid and was not shown: revoke it with toolhost token revoke %s (%w)", lost, made.Name, made.ID, err))
	}
	return exit.With(exit.Host, fmt.Errorf("%w, and make token %s again: it was not shown, and is revoked", lost, made.Name))
}

func expiry(t tokens.Token) string {
	if t.Expires.IsZero() {
		return "never expires"
	}
	return "expires " + t.Expires.Format(time.RFC3339)
}

func newTokenList() *cobra.Command {
	var flags tokenFlags
	cmd := &cobra.Command{
		Use: "list [flags]", Short: "List tokens, without their secrets", Args: cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := flags.open()
			if err != nil {
				return err
			}
			list, err := store.List()
			if err != nil {
				return exit.With(exit.Failed, err)
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tID\tSTATE\tROLES\tTOOLS\tEXPIRES\tMADE BY")
			for _, t := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, t.ID, t.State(time.Now()), access.NamesOf(t.Roles, ","), toolNames(t.Tools), strings.TrimPrefix(expiry(t), "expires "), t.By)
			}
			return table.Flush()
		},
	}
	flags.register(cmd)
	return cmd
}

func toolNames(patterns []string) string {
	if patterns == nil {
		return "all"
	}
	return strings.Join(patterns, ",")
}

func newTokenRevoke() *cobra.Command {
	var flags tokenFlags
	cmd := &cobra.Command{
		Use: "revoke [flags] NAME", Short: "Revoke a token, by its name or id",
		Long: `Revoke a token, by its name or id. The consoles that it has let in are signed out, its
streams end within two seconds, and its turns are aborted.`,
		Args: cmdline.Words(1, "NAME"),
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := flags.open()
			if err != nil {
				return err
			}
			revoked, err := store.Revoke(names[0], thisUser())
			if err != nil {
				return exit.With(exit.Failed, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked %s (%s)\n", revoked.Name, revoked.ID)
			return err
		},
	}
	flags.register(cmd)
	return cmd
}

// thisUser is who runs the command, for the record.
func thisUser() string {
	text := "uid " + strconv.Itoa(os.Getuid())
	if sudo := os.Getenv("SUDO_UID"); sudo != "" && os.Getuid() == 0 {
		if u, err := user.LookupId(sudo); err == nil {
			text += " (" + u.Username + " by sudo)"
		}
	}
	return text
}
