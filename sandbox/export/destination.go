package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox/internal/lookup"
)

const chunkBytes = 256 << 10

// destination is a folder of the host. os.Root keeps all paths in it.
type destination struct {
	root  *os.Root
	chunk []byte
}

// Open opens the folder that Copy is to fill, and makes it with mode 0700 if it
// does not exist. Open it before the workspace's owner runs, who could else put
// a link in its place. As of a granted path, links are followed only where nobody
// else can have put them.
func Open(to string) (*os.Root, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %q: %w", to, err)
	}
	if err := lookup.MakeFolder(to, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", to, text.Cause(err))
	}
	root, err := lookup.Folder(to)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %s: %w", to, text.Cause(err))
	}
	return root, nil
}

// Create opens a file to write, as os.Create does, by the same rules as Open. What the
// path names itself must not be a link: an earlier call may have put it there.
func Create(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := lookup.Folder(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %s: %w", filepath.Dir(path), text.Cause(err))
	}
	defer root.Close()
	name := filepath.Base(path)
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o644) // not to wait for a FIFO's reader
	found, lookErr := root.Lstat(name)
	if lookErr == nil && found.Mode().Type() == fs.ModeSymlink {
		err = errors.New("it is a link: name what it leads to, or remove it")
	}
	if err == nil {
		err = emptied(file, found)
	}
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, fmt.Errorf("cannot open %s: %w", path, text.Cause(err))
	}
	return file, nil
}

// emptied cuts off what a file had, if it is the one that was found.
func emptied(file *os.File, found fs.FileInfo) error {
	opened, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(opened, found):
		return errors.New("it has been replaced at this moment; try again")
	case !opened.Mode().IsRegular():
		return nil
	}
	return file.Truncate(0)
}

func (d *destination) name(f File) string { return filepath.Join(d.root.Name(), f.Path) }

// take copies a file. skipped says why it cannot be taken, err why nothing can.
func (d *destination) take(ctx context.Context, source io.Reader, f File) (skipped string, err error) {
	file, err := d.create(f)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "something of its name exists there already: remove it, or choose another folder", nil
	case unusable(err):
		return "its name cannot be used there: " + text.Cause(err).Error(), nil
	case full(err):
		return noRoom(err), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot make %s: %w", d.name(f), text.Cause(err))
	}
	skipped, err = d.fill(ctx, file, source, f)
	if closeErr := file.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("cannot write %s: %w", d.name(f), text.Cause(closeErr))
	}
	if err != nil || skipped != "" {
		err = errors.Join(err, d.root.Remove(f.Path))
	}
	return skipped, err
}

func (d *destination) create(f File) (*os.File, error) {
	if dir := path.Dir(f.Path); dir != "." {
		if err := d.root.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return d.root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|f.Mode&0o100)
}

// unusable knows the names that a file system refuses, and those below a file.
func unusable(err error) bool {
	for _, errno := range []error{unix.ENOTDIR, unix.EISDIR, unix.EINVAL, unix.EILSEQ, unix.ENAMETOOLONG} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// full says that there is no room for a file; for a smaller one there may be.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

func noRoom(err error) string { return "no room for it there: " + text.Cause(err).Error() }

// fill copies exactly the file's size.
func (d *destination) fill(ctx context.Context, file io.Writer, source io.Reader, f File) (skipped string, err error) {
	for written := int64(0); ; {
		if ctx.Err() != nil {
			return "", fmt.Errorf("the export was stopped: %w", context.Cause(ctx))
		}
		n, readErr := source.Read(d.chunk)
		written += int64(n)
		end := errors.Is(readErr, io.EOF)
		switch {
		case readErr != nil && !end:
			return "unreadable: " + text.Cause(readErr).Error(), nil
		case written > f.Bytes || end && written < f.Bytes:
			return errChanged.Error(), nil
		}
		if _, err := file.Write(d.chunk[:n]); full(err) {
			return noRoom(err), nil
		} else if err != nil {
			return "", fmt.Errorf("cannot write %s: %w", d.name(f), text.Cause(err))
		}
		if end {
			return "", nil
		}
	}
}
