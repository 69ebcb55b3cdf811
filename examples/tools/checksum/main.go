// Command checksum is a tool that takes the SHA-256 of every file of a tree, in
// parallel, and streams lines as sha256sum writes them, in path order as far
// as they are ready: what a call that is cut short has kept can be checked.
//
//	cd path && sha256sum -c lines
//
// Paths are relative to the folder that was named (a file's to its folder).
// Symbolic links and special files are left out and counted. A name that is not
// UTF-8 is shown with U+FFFD, so that its line cannot be checked; the tree's
// own sum has the true name.
package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/toolhost/toolhost/plugin"
)

func main() { plugin.Serve(newTool()) }

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{
		Name:        "checksum",
		Title:       "Checksum of a tree",
		Description: "SHA-256 of every file below a path, as sha256sum writes them, and of the whole tree.",
		ReadOnly:    true,
		Idempotent:  true,
	}, checksum)
}

// Arguments say what to read.
type Arguments struct {
	Path string `json:"path,omitempty" jsonschema:"file or folder; default ."`
}

// Summary describes the whole tree. TreeSHA256 is that of all lines in path
// order, the same wherever the tree is.
type Summary struct {
	Files      int64  `json:"files"`
	Bytes      int64  `json:"bytes"`
	Skipped    int64  `json:"skipped"`
	TreeSHA256 string `json:"tree_sha256"`
}

// checksum fails if a file cannot be read, since the tree's sum would not be
// one; the lines of the others are streamed all the same.
func checksum(ctx context.Context, in Arguments, out *plugin.Output) (Summary, error) {
	in.Path = cmp.Or(in.Path, ".")
	w, err := newWalk(in.Path)
	if err != nil {
		return Summary{}, err
	}
	r := newReport(out)
	if err := sum(ctx, w, r); err != nil {
		return Summary{}, err
	}
	if r.failures > 0 {
		return Summary{}, fmt.Errorf("%d files or folders could not be read, %d could: %w", r.failures, r.files, r.first)
	}
	return Summary{Files: r.files, Bytes: r.bytes, Skipped: w.skipped, TreeSHA256: r.tree()}, nil
}
