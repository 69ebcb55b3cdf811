package capture

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/toolhost/toolhost/sandbox/export"
)

// Spills are the files of one call. Their folder is opened before the call runs, which
// could else lead what it writes to anywhere.
type Spills struct {
	dir   string
	call  string   // by which its files are named: IDs of calls may come again
	total int64    // of the folder's files, those of other calls included; negative means any
	root  *os.Root // nil if it could not be opened, for err
	err   error
	made  atomic.Bool // a file, which others may have to make room for
}

// OpenSpills opens a folder, and makes it where it is missing. Nil is that of the empty
// path. A problem ends the spills, never the call.
func OpenSpills(dir string, total int64) *Spills {
	if dir == "" {
		return nil
	}
	s := &Spills{dir: dir, call: rand.Text(), total: total}
	s.root, s.err = export.Open(dir)
	return s
}

// File is that of a stream, stdout or stderr, and is not made before it is needed.
func (s *Spills) File(stream string, limit int64) *Spill {
	if s == nil {
		return nil
	}
	if s.total >= 0 {
		limit = min(limit, s.total/2) // there are two streams
	}
	return &Spill{of: s, name: s.call + "." + stream, limit: limit, err: s.err}
}

// Close comes after the files'. It removes the oldest files in the folder, of calls that
// may long be over, as far as all are more than may be there.
func (s *Spills) Close() {
	if s == nil || s.root == nil {
		return
	}
	if s.made.Load() && s.total >= 0 {
		s.prune()
	}
	_ = s.root.Close()
}

// Spill is a file that takes what memory does not keep, up to a limit of its
// own. It belongs to one Stream, under whose lock it is used.
type Spill struct {
	of    *Spills
	name  string
	limit int64

	file    *os.File
	written int64
	err     error
}

func (s *Spill) path() string { return filepath.Join(s.of.dir, s.name) }

func (s *Spill) started() bool { return s.file != nil || s.err != nil }

// write appends p as far as the limit and the disk allow; a problem ends the
// spill, never the stream.
func (s *Spill) write(p []byte) {
	if !s.started() {
		s.of.made.Store(true)
		s.file, s.err = s.of.root.OpenFile(s.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	if s.err != nil {
		return
	}
	room := s.limit - s.written
	cut := int64(len(p)) > room
	if cut {
		p = p[:room]
	}
	n, err := s.file.Write(p)
	s.written += int64(n)
	switch {
	case err != nil:
		s.err = err
	case cut:
		s.err = fmt.Errorf("it has reached its limit of %d bytes", s.limit)
	}
}

func (s *Spill) problem() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

func (s *Spill) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
