// Package export takes files out of a workspace whose content is hostile: a
// folder that untrusted processes have filled. It follows no links, crosses no
// mounts, opens nothing but regular files and folders, writes only below the
// destination, and everything it does is bounded.
//
// The processes must be dead; should one live, then it can make an export
// incomplete, but cannot make it leave the workspace. Needs openat2(2), Linux
// 5.6.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Limits bound an export. Zero fields are the defaults.
type Limits struct {
	// Files is how many names are looked at, of files of any kind and of
	// folders: 1000.
	Files int
	// Bytes is the sum of the sizes of the files taken: 64 MiB.
	Bytes int64
	// FileBytes is the size of one file, holes included: 16 MiB.
	FileBytes int64
	// Depth is how many folders a file may be below the workspace: 32. Each
	// takes a file descriptor during the walk.
	Depth int
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Files < 0 || l.Bytes < 0 || l.FileBytes < 0 || l.Depth < 0 {
		return l, fmt.Errorf("a limit is negative: %+v; give positive ones, or 0 for the default", l)
	}
	return Limits{
		Files:     cmp.Or(l.Files, 1000),
		Bytes:     cmp.Or(l.Bytes, 64<<20),
		FileBytes: cmp.Or(l.FileBytes, 16<<20),
		Depth:     cmp.Or(l.Depth, 32),
	}, nil
}

// File is a file of the workspace, or something else there that was not taken.
type File struct {
	// Path is relative to the workspace and to the destination, with slashes.
	// It is printable UTF-8: other characters are written as %XX, and so is a
	// % where it could be taken for that; a name that gets too long so is cut
	// and ends in %~ and a hash. Different files have different paths.
	Path string
	// Bytes is the file's size, holes included. A file with several names
	// counts once for each.
	Bytes int64
	// Mode is the file's type and mode in the workspace, zero if it could not
	// be found out.
	Mode fs.FileMode
	// Skipped says why it is not taken; empty if it is.
	Skipped string
}

// Listing is what a workspace contains.
type Listing struct {
	// Files are sorted by path. Folders are listed only if skipped.
	Files []File
	// Bytes is the sum of the files that are not skipped.
	Bytes int64
	// Truncated says that there is more than Limits.Files names. Which are
	// listed then is the file system's choice.
	Truncated bool
}

// List tells what Copy would take from the workspace, a folder opened with
// O_RDONLY or O_PATH, which it neither closes nor moves. An error is one of
// the whole (the context's end, a workspace that cannot be read), never of a
// single file.
func List(ctx context.Context, workspace *os.File, l Limits) (Listing, error) {
	return run(ctx, workspace, l, nil)
}

// Copy copies the workspace's regular files into a folder of the host's (see
// Open). Nobody else may write there meanwhile.
//
// Folders get mode 0755 and files 0644, or 0744 if their owner could execute
// them; all less the umask, and owned by the caller. Times, attributes, hard
// links and empty folders are not kept.
//
// It overwrites nothing: a file whose name exists is skipped. After an error the
// listing has what was copied before, which stays; no file is left half-written.
func Copy(ctx context.Context, workspace *os.File, to *os.Root, l Limits) (Listing, error) {
	return run(ctx, workspace, l, &destination{root: to, chunk: make([]byte, chunkBytes)})
}

func run(ctx context.Context, workspace *os.File, l Limits, d *destination) (Listing, error) {
	l, err := l.withDefaults()
	if err != nil {
		return Listing{}, err
	}
	dir, err := openFolder(workspace, ".")
	if err != nil {
		return Listing{}, fmt.Errorf("cannot open the workspace: %w", err)
	}
	defer dir.Close()
	w := &walk{ctx: ctx, limits: l, left: l.Files, to: d}
	err = w.top(dir)
	slices.SortFunc(w.listing.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return w.listing, err
}

// top walks the workspace itself, without which there is no listing.
func (w *walk) top(dir *os.File) error {
	readErr, err := w.folder(dir, "", 0)
	if readErr != nil {
		readErr = fmt.Errorf("cannot read the workspace: %w", readErr)
	}
	return errors.Join(err, readErr)
}
