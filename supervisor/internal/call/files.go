package call

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/export"
)

// collectFiles begins to list what a sandboxed call has left in its workspace,
// and to take it out where the request says so. It has until the answer is due,
// or the call is aborted.
func (o *owner) collectFiles() *collection {
	if o.tree == nil || o.p.Request.Keep != nil || o.found.Survivors > 0 { // that of a kept process is not the call's alone
		return nil
	}
	workspace := o.tree.Workspace()
	if workspace == nil {
		return nil
	}
	return o.collect(func(ctx context.Context) (export.Listing, error) {
		if o.p.FilesTo == nil {
			return export.List(ctx, workspace, export.Limits{})
		}
		return export.Copy(ctx, workspace, o.p.FilesTo, export.Limits{})
	})
}

// collection is the taking of a call's files, by a goroutine of its own: a file
// system can hold that up for longer than an answer may take.
type collection struct {
	ctx    context.Context
	cancel context.CancelFunc
	found  export.Listing
	err    error
	done   chan struct{} // closed when found and err are written
	copies bool
}

var errFilesLate = errors.New("they were not collected before the answer was due")

func (o *owner) collect(take func(context.Context) (export.Listing, error)) *collection {
	f := &collection{done: make(chan struct{}), copies: o.p.FilesTo != nil}
	f.ctx, f.cancel = context.WithDeadlineCause(o.making, o.hardLimit().Add(-lastMoment), errFilesLate)
	o.helpers.Go(func() {
		defer close(f.done)
		f.found, f.err = take(f.ctx)
	})
	return f
}

// wait returns what was taken in time; a collection whose time is over has a moment for
// saying what that is.
func (f *collection) wait() (export.Listing, error) {
	defer f.cancel()
	select {
	case <-f.done:
		return f.found, f.err
	case <-f.ctx.Done():
	}
	select {
	case <-f.done:
		return f.found, f.err
	case <-time.After(lastMoment):
		return export.Listing{}, errFilesLate
	}
}

// fill waits for the files and adds them to the result.
func (f *collection) fill(r *api.Result) {
	if f == nil {
		return
	}
	found, err := f.wait()
	r.FilesIncomplete = err != nil || found.Truncated
	if err != nil {
		r.Warnings = append(r.Warnings, "the workspace's files are incomplete: "+err.Error())
	}
	if found.Truncated {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the workspace has more than the %d files that are listed", len(found.Files)))
	}
	var skipped, closed []api.File
	for _, file := range found.Files {
		one := api.File{Path: file.Path, Bytes: file.Bytes, Skipped: file.Skipped}
		if r.Files = append(r.Files, one); one.Skipped != "" {
			skipped = append(skipped, one)
			if file.Mode.IsDir() && file.Skipped != export.Mount {
				closed = append(closed, one)
			}
		}
	}
	if len(skipped) > 0 && f.copies {
		r.FilesIncomplete = true
		r.Warnings = append(r.Warnings, notCopied(skipped))
	} else if len(closed) > 0 {
		r.FilesIncomplete = true
		r.Warnings = append(r.Warnings, notListed(closed))
	}
}

// notCopied says why of the first file; the result's files say it of each.
func notCopied(skipped []api.File) string {
	first := fmt.Sprintf("%q: %s", skipped[0].Path, skipped[0].Skipped)
	if len(skipped) == 1 {
		return "1 of the workspace's files was not copied: " + first
	}
	return fmt.Sprintf("%d of the workspace's files were not copied, such as %s", len(skipped), first)
}

// notListed says it of folders whose files nobody has seen.
func notListed(folders []api.File) string {
	first := fmt.Sprintf("%q: %s", folders[0].Path, folders[0].Skipped)
	if len(folders) == 1 {
		return "the files of 1 of the workspace's folders are not listed: " + first
	}
	return fmt.Sprintf("the files of %d of the workspace's folders are not listed, such as %s", len(folders), first)
}
