package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/callargs"
)

func newVerify(flags *logFlags) *cobra.Command {
	var expect string
	var print bool
	cmd := &cobra.Command{
		Use: "verify [flags]", Short: "Check the chain of the daemon's audit records",
		Long: `Check the chain of the daemon's audit records: who has made and revoked tokens,
signed in, answered, aborted, loaded a configuration, or was refused. Each record has
the hash of itself and of the one before, so that none within the chain can be changed
or taken out unseen. Anyone who can write the journal can make a whole new chain, or cut
off its end: the daemon's log has each record's hash, too, and --expect holds the chain
to one that was noted.`,
		Example: "  toolhost log verify\n  toolhost log verify --records\n  toolhost log verify --expect 17:9f2c…",
		Args:    callargs.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			seq, hash, err := parseExpected(expect)
			if err != nil {
				return err
			}
			reader, err := flags.auditReader()
			if err != nil {
				return err
			}
			defer reader.Close()
			head, found := journal.Audit{}, seq == 0
			err = reader.Audits(0, func(a journal.Audit) bool {
				head = a
				found = found || a.Seq == seq && a.Hash == hash
				if print {
					raw, _ := json.Marshal(a)
					fmt.Fprintln(cmd.OutOrStdout(), terminal.OneLine(string(raw)))
				}
				return true
			})
			switch {
			case errors.Is(err, journal.ErrBroken):
				return exit.With(exit.Failed, err)
			case err != nil:
				return hostError(err)
			case !found:
				return exit.With(exit.Failed, fmt.Errorf("%w: record %d with that hash is not in it", journal.ErrBroken, seq))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the chain holds: %d records, the last is %d:%s\n", head.Seq, head.Seq, head.Hash)
			return nil
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", "a record that must be in the chain, as `SEQ:HASH`")
	cmd.Flags().BoolVar(&print, "records", false, "print the records, as JSON, one a line")
	return cmd
}

func parseExpected(text string) (seq int64, hash string, err error) {
	if text == "" {
		return 0, "", nil
	}
	number, hash, _ := strings.Cut(text, ":")
	seq, err = strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 || len(hash) != 64 {
		return 0, "", exit.Usagef("--expect %q is not a record: give SEQ:HASH, as this command prints it", text)
	}
	return seq, hash, nil
}

// auditReader opens the daemon's journal.
func (f *logFlags) auditReader() (*journal.Reader, error) {
	where := tokenFlags{state: f.journal.state, config: f.config}
	store, err := where.open()
	if err != nil {
		return nil, err
	}
	reader, err := journal.OpenReader(store.Dir())
	if err != nil {
		return nil, hostError(err)
	}
	return reader, nil
}
