package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/sandbox"
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
	if c.filesTo == nil {
		found, err = export.List(ctx, workspace, export.Limits{})
	} else {
		found, err = export.Copy(ctx, workspace, c.filesTo, export.Limits{})
	}
	r.FilesIncomplete = err != nil || found.Truncated
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
	if skipped > 0 && c.filesTo != nil {
		r.FilesIncomplete = true
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of the workspace's files were not taken out; files says why", skipped))
	}
}

// openFilesTo opens the folder for the call's files before the call runs: one
// that may write there could else lead it elsewhere.
func (c *Call) openFilesTo(policy sandbox.Resolved) (err error) {
	to := c.request.FilesTo
	if to == "" {
		return nil
	}
	if !policy.Confines() {
		return refuse(StatusStartFailed, "policy", errors.New("files are taken out of a sandbox's workspace only: leave out the folder for them, or the tier none"))
	}
	if to, err = filepath.Abs(to); err == nil && policy.MayWrite(to) {
		err = fmt.Errorf("cannot take files to %s: the call may write there itself; choose another folder", to)
	}
	if err == nil {
		c.filesTo, err = export.Open(to)
	}
	if err != nil {
		return refuse(StatusStartFailed, "policy", err)
	}
	return nil
}

func (c *Call) closeFilesTo() {
	if c.filesTo != nil {
		_ = c.filesTo.Close()
	}
}

// workspace is there for a call whose processes are gone; that of a kept one is
// not the call's alone.
func (c *Call) workspace() *os.File {
	if c.instance == nil || c.line != nil || c.kill.survivors > 0 {
		return nil
	}
	return c.instance.process.Workspace()
}
