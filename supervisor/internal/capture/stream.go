// Package capture keeps a bounded part of unbounded output: the head and the
// tail, half of the limit each, and exact counts of everything. Memory never
// grows beyond the limit, whatever a tool writes.
package capture

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Stream is a byte stream cut to a limit. It may be written and read from
// several goroutines; Write never fails, so that a tool never blocks on it.
type Stream struct {
	mu    sync.Mutex
	half  int
	head  []byte
	tail  ring
	seen  int64
	spill *Spill
}

// NewStream keeps at most limit bytes (at least 2); spill, if not nil, gets
// the whole stream as soon as the limit is passed.
func NewStream(limit int64, spill *Spill) *Stream {
	half := int(max(limit, 2) / 2)
	return &Stream{half: half, tail: ring{limit: half}, spill: spill}
}

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	s.spillOver(p)
	s.seen += int64(n)
	if room := s.half - len(s.head); room > 0 {
		k := min(room, len(p))
		s.head = append(s.head, p[:k]...)
		p = p[k:]
	}
	s.tail.write(p)
	return n, nil
}

// spillOver starts the spill file with what was kept so far, nothing of which
// is lost yet, when p is the first write beyond the limit.
func (s *Stream) spillOver(p []byte) {
	if s.spill == nil || s.seen+int64(len(p)) <= int64(2*s.half) {
		return
	}
	if !s.spill.started() {
		s.spill.write(s.head)
		s.spill.write(s.tail.bytes())
	}
	s.spill.write(p)
}

// Kept is what is left of a stream.
type Kept struct {
	// Head and Tail are valid UTF-8; if nothing was dropped, Head is all.
	Head, Tail string
	// SeenBytes went through, KeptBytes of them are in Head and Tail (where what
	// is not UTF-8 is then replaced), DroppedBytes are not.
	SeenBytes, KeptBytes, DroppedBytes int64
	// SpillPath is the file that holds more than Head and Tail; empty if none.
	SpillPath string
	// SpillError says why the spill file is not whole; empty if it is.
	SpillError string
}

// Kept returns what is left so far.
func (s *Stream) Kept() Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, tail := s.parts()
	k := Kept{Head: valid(head), Tail: valid(tail), SeenBytes: s.seen, KeptBytes: int64(len(head) + len(tail))}
	k.DroppedBytes = k.SeenBytes - k.KeptBytes
	if s.spill != nil && s.spill.started() {
		k.SpillPath, k.SpillError = s.spill.Path, s.spill.problem()
	}
	return k
}

// parts is what is kept, as it was written; all of it in head where nothing is
// dropped.
func (s *Stream) parts() (head, tail string) {
	rest := s.tail.bytes()
	if int64(len(s.head)+len(rest)) == s.seen {
		return string(s.head) + string(rest), ""
	}
	return string(wholeEnd(s.head)), string(wholeStart(rest))
}

// Seen is the number of bytes that went through.
func (s *Stream) Seen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Close closes the spill file.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spill != nil {
		s.spill.close()
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// wholeEnd leaves out a character that the cut has split at the end.
func wholeEnd(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// wholeStart leaves out the rest of a character that the cut has split.
func wholeStart[S string | []byte](b S) S {
	for i := range min(utf8.UTFMax-1, len(b)) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b[min(utf8.UTFMax-1, len(b)):]
}
