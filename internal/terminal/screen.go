package terminal

import (
	"bytes"
	"io"
	"sync"

	"github.com/toolhost/toolhost/internal/text"
)

// Screen is a terminal that a command's own output passes to. It knows how that
// has left it, so that a line of ours is not made one with a line of the
// command's.
type Screen struct {
	mu       sync.Mutex
	open     bool // the last line has no end
	coloured bool // it may be in any colour, invisible too
	writers  []*screenWriter
}

// Escaping passes what a command writes, its control characters escaped. A
// sequence that is cut by a write is escaped: that is safe, only less pretty. The
// beginning of a character waits for its rest.
func (s *Screen) Escaping(w io.Writer) io.Writer { return s.writer(w, true) }

// Raw passes every byte as it is.
func (s *Screen) Raw(w io.Writer) io.Writer { return s.writer(w, false) }

func (s *Screen) writer(w io.Writer, escapes bool) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &screenWriter{s: s, w: w, escapes: escapes}
	s.writers = append(s.writers, made)
	return made
}

type screenWriter struct {
	s       *Screen
	w       io.Writer
	escapes bool
	half    []byte // of a character; guarded by s.mu
}

func (w *screenWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	shown := p
	if w.escapes {
		shown, w.half = text.Whole(w.half, p)
		shown = []byte(Escape(string(shown), true))
	}
	if len(p) > 0 {
		w.s.open = p[len(p)-1] != '\n'
		w.s.coloured = w.s.coloured || bytes.IndexByte(shown, 0x1b) >= 0
	}
	if _, err := w.w.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Fresh is what brings a terminal to a line of ours: in its own colours, and
// below whatever the command has left there.
func (s *Screen) Fresh() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := ""
	for _, w := range s.writers {
		fresh += Escape(string(w.half), true)
		w.half = nil
	}
	if s.coloured {
		fresh += "\x1b[0m"
	}
	if s.open {
		fresh += "\n"
	}
	s.open, s.coloured = false, false
	return fresh
}
