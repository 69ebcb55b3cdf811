package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/internal/cli/cmdline"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/cli/logview"
	"github.com/toolhost/toolhost/internal/journal"
)

func newVerify(flags *logFlags) *cobra.Command {
	var expect string
	var chain logview.Chain
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
		Args:    cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chain.Out = cmd.OutOrStdout()
			return flags.verify(chain, expect)
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", "a record that must be in the chain, as `SEQ:HASH`")
	cmd.Flags().BoolVar(&chain.Records, "records", false, "print the records, as JSON, one a line")
	return cmd
}

// verify checks the chain, and the tokens beside it.
func (f *logFlags) verify(chain logview.Chain, expect string) (err error) {
	if chain.Seq, chain.Hash, err = parseExpected(expect); err != nil {
		return err
	}
	where := tokenFlags{state: f.journal.state, config: f.config}
	store, err := where.open()
	if err != nil {
		return err
	}
	reader, err := journal.OpenReader(store.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no daemon has kept a journal in %s: name a daemon's state folder with --state", store.Dir())
	}
	if err != nil {
		return hostError(err)
	}
	defer reader.Close()
	err = chain.Verify(reader)
	if err != nil && !errors.Is(err, journal.ErrBroken) && !errors.Is(err, logview.ErrNotKept) {
		return hostError(err)
	}
	if err == nil {
		err = chain.Missing(store)
	}
	if err != nil {
		return exit.With(exit.Failed, err)
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
	return seq, strings.ToLower(hash), nil
}
