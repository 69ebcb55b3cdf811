package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrGone: a file of the journal was removed or replaced while it was open. What went there would be on record for
// nobody, and another process could own the directory.
var ErrGone = errors.New("the journal is not where it was opened")

// files are those of a directory that must stay what they were.
type files struct {
	dir  string
	held []os.FileInfo
}

func (f *files) hold(name string) error {
	info, err := os.Lstat(filepath.Join(f.dir, name))
	if err == nil {
		f.held = append(f.held, info)
	}
	return err
}

func (f *files) present() error {
	for _, was := range f.held {
		path := filepath.Join(f.dir, was.Name())
		if now, err := os.Lstat(path); err != nil || !os.SameFile(was, now) {
			return fmt.Errorf("%w: %s was removed or replaced: restart toolhost, or put the same file back", ErrGone, path)
		}
	}
	return nil
}

// Present returns why nothing can go on record any more: ErrGone. It costs some microseconds.
func (j *Journal) Present() error { return j.writer.files.present() }
