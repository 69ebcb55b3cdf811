package capture

import (
	"fmt"
	"os"
)

// Spill is a file that takes what memory does not keep, up to a limit of its
// own. It belongs to one Stream, under whose lock it is used.
type Spill struct {
	// Path is made when it is first needed and must not exist before.
	Path string
	// LimitBytes is the most that is written to it.
	LimitBytes int64

	file    *os.File
	written int64
	err     error
}

func (s *Spill) started() bool { return s.file != nil || s.err != nil }

// write appends p as far as the limit and the disk allow; a problem ends the
// spill, never the stream.
func (s *Spill) write(p []byte) {
	if s.file == nil && s.err == nil {
		s.file, s.err = os.OpenFile(s.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	if s.err != nil {
		return
	}
	room := s.LimitBytes - s.written
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
		s.err = fmt.Errorf("it has reached its limit of %d bytes", s.LimitBytes)
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
