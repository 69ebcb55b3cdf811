package supervisor

import (
	"context"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/sandbox/export"
)

// collectFiles lists what a sandboxed call has left in its workspace, and takes
// it out where the request says so. It has until the answer is due.
func (c *Call) collectFiles(r *Result) {
	workspace := c.workspace()
	if workspace == nil {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), c.hardLimit())
	defer cancel()
	var found export.Listing
	var err error
	if c.request.FilesTo == "" {
		found, err = export.List(ctx, workspace, export.Limits{})
	} else {
		found, err = export.Copy(ctx, workspace, c.request.FilesTo, export.Limits{})
	}
	if err != nil {
		r.Warnings = append(r.Warnings, "the workspace's files are not complete: "+err.Error())
	}
	if found.Truncated {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the workspace has more than the %d files that are listed", len(found.Files)))
	}
	skipped := 0
	for _, file := range found.Files {
		if file.Skipped != "" {
			skipped++
		}
		r.Files = append(r.Files, File{Path: file.Path, Bytes: file.Bytes, Skipped: file.Skipped})
	}
	if skipped > 0 && c.request.FilesTo != "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of the workspace's files were not taken out; files says why", skipped))
	}
}

// workspace is there for a call whose processes are gone.
func (c *Call) workspace() *os.File {
	if c.tree == nil || c.kill.survivors > 0 {
		return nil
	}
	return c.tree.process.Workspace()
}
