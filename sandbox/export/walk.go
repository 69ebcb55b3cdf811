package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
)

// walk is one pass over a workspace.
type walk struct {
	ctx     context.Context
	limits  Limits
	left    int          // names that may still be looked at
	to      *destination // nil to list only
	listing Listing
}

// folder walks the entries of dir, whose path is at: empty for the workspace,
// else with a slash at its end. readErr says that the folder could not be read
// to its end, err that the walk is over.
func (w *walk) folder(dir *os.File, at string, depth int) (readErr, err error) {
	names, readErr := w.names(dir)
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return readErr, fmt.Errorf("the export was stopped: %w", context.Cause(w.ctx))
		}
		if err := w.entry(dir, name, at+escape(name), depth); err != nil {
			return readErr, err
		}
	}
	return readErr, nil
}

// names reads a folder's names, sorted, but no more than are left. It asks for
// names only: Go looks up the rest by path.
func (w *walk) names(dir *os.File) (names []string, err error) {
	for len(names) <= w.left && err == nil {
		var more []string
		more, err = dir.Readdirnames(min(256, w.left+1-len(names)))
		names = append(names, more...)
	}
	if len(names) > w.left {
		names = names[:w.left]
		w.listing.Truncated = true
	}
	w.left -= len(names)
	slices.Sort(names)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, text.Cause(err)
}

func (w *walk) entry(dir *os.File, name, at string, depth int) error {
	st, err := look(dir, name)
	if err != nil {
		return w.failed(File{Path: at}, err)
	}
	f := File{Path: at, Mode: mode(st)}
	switch {
	case f.Mode.IsDir():
		return w.enter(dir, name, f, depth+1)
	case f.Mode.IsRegular():
		f.Bytes = st.Size
		return w.file(dir, name, f, st)
	}
	return w.skip(f, kind(f.Mode))
}

func (w *walk) enter(parent *os.File, name string, f File, depth int) error {
	if depth > w.limits.Depth {
		return w.skip(f, fmt.Sprintf("deeper than %d folders", w.limits.Depth))
	}
	dir, err := openFolder(parent, name)
	if err != nil {
		return w.failed(f, err)
	}
	defer dir.Close()
	readErr, err := w.folder(dir, f.Path+"/", depth)
	if readErr != nil {
		err = errors.Join(err, w.failed(f, readErr))
	}
	return err
}

func (w *walk) file(dir *os.File, name string, f File, st *unix.Stat_t) error {
	switch {
	case f.Bytes > w.limits.FileBytes:
		return w.skip(f, fmt.Sprintf("too large: more than %d bytes", w.limits.FileBytes))
	case f.Bytes > w.limits.Bytes-w.listing.Bytes:
		return w.skip(f, fmt.Sprintf("more than %d bytes in all", w.limits.Bytes))
	}
	source, err := openFile(dir, name, st)
	if err != nil {
		return w.failed(f, err)
	}
	defer source.Close()
	if w.to != nil {
		skipped, err := w.to.take(w.ctx, source, f)
		if err != nil {
			return err
		}
		if skipped != "" {
			return w.skip(f, skipped)
		}
	}
	w.listing.Bytes += f.Bytes
	w.listing.Files = append(w.listing.Files, f)
	return nil
}

func (w *walk) skip(f File, why string) error {
	f.Skipped = why
	w.listing.Files = append(w.listing.Files, f)
	return nil
}

// failed skips what cannot be opened or read, unless nothing else could be,
// either.
func (w *walk) failed(f File, err error) error {
	for _, lacks := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, lacks) {
			return fmt.Errorf("cannot open %s in the workspace: %w", f.Path, err)
		}
	}
	switch {
	case errors.Is(err, unix.EXDEV):
		return w.skip(f, Mount)
	case errors.Is(err, unix.ELOOP):
		return w.skip(f, kind(fs.ModeSymlink))
	case errors.Is(err, errChanged):
		return w.skip(f, err.Error())
	}
	return w.skip(f, "unreadable: "+text.Cause(err).Error())
}

// Mount is why something that is mounted in the workspace, and not a part of it, is skipped.
const Mount = "a mount"

// kind names what is never taken.
func kind(m fs.FileMode) string {
	switch m.Type() {
	case fs.ModeSymlink:
		return "symbolic link"
	case fs.ModeNamedPipe:
		return "named pipe"
	case fs.ModeSocket:
		return "socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return "device"
	}
	return "no regular file"
}
