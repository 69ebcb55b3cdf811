package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
)

func newApprovals() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "List and revoke what people have approved for more than one call",
		Long: `List and revoke what people have approved for more than one call: for a turn, for a
session, or for all turns of an identity. Each is for one tool as it was when it was
approved, and where a rule had asked, for calls that the same rule asks about.

With the role call you see and revoke those for your own calls, with the role approve
everybody's.`,
		Args: cmdline.Command,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newApprovalsList(), newApprovalsRevoke())
	return cmd
}

func newApprovalsList() *cobra.Command {
	var asJSON bool
	cmd := daemonCommand(&cobra.Command{
		Use: "list [flags]", Short: "List the approvals in force, the oldest first", Args: cmdline.Words(0),
	}, func(cmd *cobra.Command, daemon *remote, _ []string) error {
		list, err := daemon.Approvals(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return present.JSON(cmd.OutOrStdout(), api.Approvals{Approvals: list}, false)
		}
		rows := [][]string{{"APPROVAL", "TOOL", "FOR", "ARGUMENTS", "BY", "EXPIRES", "USES"}}
		for _, a := range list {
			rows = append(rows, []string{
				a.ID, terminal.Cell(a.Tool), terminal.Cell(approvedFor(a)), terminal.Cell(argumentsOf(a)), terminal.Cell(a.By), approvedUntil(a), strconv.Itoa(a.Uses),
			})
		}
		return present.Table(cmd.OutOrStdout(), rows, 1)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what GET /api/approvals answers")
	return cmd
}

func approvedFor(a api.Approval) string {
	switch owner := cmp.Or(a.Owner, "nobody in particular"); a.For {
	case api.ForTurn:
		return "turn " + a.TurnID + " of " + owner
	case api.ForSession:
		return "session " + a.SessionID + " of " + owner
	default:
		return owner
	}
}

func argumentsOf(a api.Approval) string {
	switch {
	case a.Arguments != nil:
		return present.Fit(string(a.Arguments), maxPrompt)
	case a.Rule != "":
		return present.Fit(a.Rule, maxPrompt)
	}
	return "any"
}

func approvedUntil(a api.Approval) string {
	if !a.RevokedAt.IsZero() {
		return "revoked, not kept yet"
	}
	if a.ExpiresAt.IsZero() {
		return "with it"
	}
	return a.ExpiresAt.Local().Format(time.DateTime)
}

func newApprovalsRevoke() *cobra.Command {
	return daemonCommand(&cobra.Command{
		Use: "revoke [flags] APPROVAL", Short: "Take an approval back: calls that it covers are asked about again",
		Long: `Take an approval back, by its id: calls that it covers are asked about again. Running
calls go on.`,
		Args: cmdline.Words(1, "APPROVAL"),
	}, func(cmd *cobra.Command, daemon *remote, ids []string) error {
		if err := daemon.RevokeApproval(cmd.Context(), ids[0]); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "revoked", terminal.OneLine(ids[0]))
		return err
	})
}
