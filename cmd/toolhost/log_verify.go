package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/access/tokens"
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
the hash of itself and of the one before, so that no record within the chain can
be changed or removed unnoticed. Anyone who can write the journal can make a whole new
chain, or cut off its end: the daemon's log has each record's hash too, and --expect
checks that a noted one is in the chain. What was done with tokens while no daemon ran
enters the chain when the next one starts; until then it is shown.`,
		Example: "  toolhost log verify\n  toolhost log verify --records\n  toolhost log verify --expect 17:9f2c…",
		Args:    callargs.Words(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return flags.verify(cmd, expect, print) },
	}
	cmd.Flags().StringVar(&expect, "expect", "", "a record that must be in the chain, as `SEQ:HASH`")
	cmd.Flags().BoolVar(&print, "records", false, "print the records, as JSON, one a line")
	return cmd
}

// verify reads the whole chain, printing its records if it is told to, and looks for the one
// that is expected.
func (f *logFlags) verify(cmd *cobra.Command, expect string, print bool) error {
	seq, hash, err := parseExpected(expect)
	if err != nil {
		return err
	}
	reader, store, err := f.auditReader()
	if err != nil {
		return err
	}
	defer reader.Close()
	head, count, found := journal.Audit{}, 0, seq == 0
	var onRecord tokens.OnRecord
	err = reader.Audits(0, func(a journal.Audit) bool {
		head = a
		count++
		found = found || a.Seq == seq && a.Hash == hash
		onRecord.Note(a.Action, a.What)
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
	fmt.Fprintf(cmd.OutOrStdout(), "the chain holds: %d records, the last is %d:%s\n", count, head.Seq, head.Hash)
	return tellMissing(cmd, store, onRecord)
}

// tellMissing says what was done with tokens and is not in the chain. What no program of
// toolhost's does to them is an error.
func tellMissing(cmd *cobra.Command, store *tokens.Store, onRecord tokens.OnRecord) error {
	list, err := store.List()
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	odd := 0
	for _, c := range onRecord.Missing(list, time.Now()) {
		fmt.Fprintf(cmd.OutOrStdout(), "not in it yet: %s\n", terminal.OneLine((&journal.Audit{Who: c.Who, Action: c.Action, What: c.What}).Words()))
		if c.Odd() {
			odd++
		}
	}
	if odd > 0 {
		return exit.With(exit.Failed, fmt.Errorf("%d tokens are not as they are on record: something other than toolhost has changed %s", odd, store.Path()))
	}
	return nil
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

// auditReader opens the daemon's journal, and the tokens beside it.
func (f *logFlags) auditReader() (*journal.Reader, *tokens.Store, error) {
	where := tokenFlags{state: f.journal.state, config: f.config}
	store, err := where.open()
	if err != nil {
		return nil, nil, err
	}
	reader, err := journal.OpenReader(store.Dir())
	if err != nil {
		return nil, nil, hostError(err)
	}
	return reader, store, nil
}
