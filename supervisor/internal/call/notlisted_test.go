package call

import (
	"io/fs"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/export"
)

// Where files are in folders that were not opened, the list says that it is incomplete.
func TestFilesOfSkippedFolders(t *testing.T) {
	dir := func(path, why string) export.File {
		return export.File{Path: path, Mode: fs.ModeDir, Skipped: why}
	}
	for want, files := range map[string][]export.File{
		"": {{Path: "link", Mode: fs.ModeSymlink, Skipped: "symbolic link"}, dir("m", export.Mount)},
		`the files of 1 of the workspace's folders are not listed: "d": deep`:               {{Path: "a"}, dir("d", "deep")},
		`the files of 2 of the workspace's folders are not listed, such as "d": unreadable`: {dir("d", "unreadable"), dir("e", "deep")},
	} {
		f := &collection{ctx: t.Context(), cancel: func() {}, found: export.Listing{Files: files}, done: make(chan struct{})}
		close(f.done)
		var r api.Result
		f.fill(&r)
		got := ""
		for _, warning := range r.Warnings {
			got += warning
		}
		if got != want || r.FilesIncomplete != (want != "") || len(r.Files) != len(files) {
			t.Errorf("%+v", r)
		}
	}
}
