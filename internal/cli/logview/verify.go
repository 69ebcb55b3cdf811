package logview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
)

// ErrNotKept is why a record cannot be checked: it was dropped with others of its age.
var ErrNotKept = errors.New("the record is not kept any more")

// Chain is that of a daemon's audit records, as it is to be checked.
type Chain struct {
	Out io.Writer
	// Records has each record printed, as JSON.
	Records bool
	// Seq and Hash are of a record that must be in the chain; 0 means none.
	Seq  int64
	Hash string

	onRecord tokens.OnRecord
}

// Verify reads the whole chain. An error is a [journal.ErrBroken] if the chain does not
// hold, an [ErrNotKept], or else why it cannot be read.
func (c *Chain) Verify(reader *journal.Reader) error {
	head, count, found := journal.Audit{}, int64(0), c.Seq == 0
	err := reader.Audits(0, func(a journal.Audit) bool {
		head = a
		count++
		found = found || a.Seq == c.Seq && a.Hash == c.Hash
		c.onRecord.Note(a.Action, a.What)
		if c.Records {
			raw, _ := json.Marshal(a)
			fmt.Fprintln(c.Out, terminal.OneLine(string(raw)))
		}
		return true
	})
	if first := head.Seq - count + 1; err == nil && !found {
		err = c.notFound(first)
	}
	if err == nil {
		fmt.Fprintf(c.Out, "the chain holds: %d records, the last is %d:%s\n", count, head.Seq, head.Hash)
	}
	return err
}

// notFound is the error of a record that is not in the chain, by the first that is kept.
func (c *Chain) notFound(first int64) error {
	if c.Seq < first {
		return fmt.Errorf("%w: the oldest is %d: expect a later one than %d", ErrNotKept, first, c.Seq)
	}
	return fmt.Errorf("%w: record %d with that hash is not in it", journal.ErrBroken, c.Seq)
}

// Missing says what was done with tokens and is not in the chain that was verified. What no
// program of toolhost's does to them is an error.
func (c *Chain) Missing(store *tokens.Store) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	odd := 0
	for _, change := range c.onRecord.Missing(list, time.Now()) {
		fmt.Fprintf(c.Out, "not in it yet: %s\n", terminal.OneLine((&journal.Audit{Who: change.Who, Action: change.Action, What: change.What}).Words()))
		if change.Odd() {
			odd++
		}
	}
	if odd > 0 {
		return fmt.Errorf("%d tokens are not as they are on record: something other than toolhost has changed %s", odd, store.Path())
	}
	return nil
}
