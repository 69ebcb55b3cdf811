// Package capture keeps a bounded part of unbounded output: the head and the
// tail, half of the limit each, and exact counts of everything. Memory never
// grows beyond the limit, whatever a tool writes.
package capture

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
)

// Stream is a byte stream cut to a limit. It may be written and read from
// several goroutines; Write never fails, so that a tool never blocks on it.
type Stream struct {
	// writing is held by the writer, also while it spills to disk: readers do
	// not wait for that.
	writing sync.Mutex
	spill   *Spill

	mu   sync.Mutex // to write what follows, writing is held too
	half int
	head []byte
	tail ring
	seen int64
}

// NewStream keeps at most limit bytes (at least 2); spill, if not nil, gets
// the whole stream as soon as the limit is passed.
func NewStream(limit int64, spill *Spill) *Stream {
	half := int(max(limit, 2) / 2)
	return &Stream{half: half, tail: ring{limit: half}, spill: spill}
}

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	n := len(p)
	s.spillOver(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen += int64(n)
	if room := s.half - len(s.head); room > 0 {
		k := min(room, len(p))
		s.head = append(s.head, p[:k]...)
		p = p[k:]
	}
	s.tail.write(p)
	return n, nil
}

// spillOver starts the spill file with what was kept so far, before any of it
// is lost, when p is the first write beyond the limit.
func (s *Stream) spillOver(p []byte) {
	if s.spill == nil || s.seen+int64(len(p)) <= int64(2*s.half) {
		return
	}
	if !s.spill.started() {
		s.spill.write(s.head)
		older, newer := s.tail.parts()
		s.spill.write(older)
		s.spill.write(newer)
	}
	s.spill.write(p)
}

// Kept is what is left of a stream.
type Kept struct {
	// Head and Tail are valid UTF-8; if nothing was dropped, Head is all. KeptBytes are
	// those before invalid UTF-8 was replaced. SpillPath is the file that holds more.
	api.StreamOutput
	// SpillError says why the spill file is not whole; empty if it is.
	SpillError string
}

// Kept returns what is left so far.
func (s *Stream) Kept() Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, tail := s.parts()
	k := Kept{StreamOutput: api.StreamOutput{Head: valid(head), Tail: valid(tail), SeenBytes: s.seen, KeptBytes: int64(len(head) + len(tail))}}
	k.DroppedBytes = k.SeenBytes - k.KeptBytes
	if k.SeenBytes > int64(2*s.half) {
		k.SpillPath, k.SpillError = s.spilled()
	}
	return k
}

// spilled is the spill file, and why it is not whole.
func (s *Stream) spilled() (path, problem string) {
	if s.spill == nil {
		return "", ""
	}
	if !s.writing.TryLock() {
		return s.spill.path(), "it was still being written"
	}
	defer s.writing.Unlock()
	return s.spill.path(), s.spill.problem()
}

// parts is what is kept, as it was written; all of it in head where nothing is
// dropped.
func (s *Stream) parts() (head, tail string) {
	if int64(len(s.head)+len(s.tail.buf)) == s.seen {
		return joined(s.head, s.tail), ""
	}
	return string(wholeEnd(s.head)), wholeStart(joined(nil, s.tail))
}

// joined is head and what the ring has behind it, copied once.
func joined(head []byte, tail ring) string {
	older, newer := tail.parts()
	var text strings.Builder
	text.Grow(len(head) + len(older) + len(newer))
	for _, part := range [][]byte{head, older, newer} {
		text.Write(part)
	}
	return text.String()
}

// Close closes the spill file.
func (s *Stream) Close() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.spill != nil {
		s.spill.close()
	}
}

// valid is s with each stretch of it that is not UTF-8 replaced by one U+FFFD. It
// is strings.ToValidUTF8, but fast for hundreds of megabytes.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out := make([]byte, 0, len(s)+len(s)/8)
	bad := false // what is before i
	for i := 0; i < len(s); {
		size := 1
		if s[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				if !bad {
					out = append(out, "\uFFFD"...)
				}
				bad = true
				i++
				continue
			}
			size = n
		}
		bad = false
		out = append(out, s[i:i+size]...)
		i += size
	}
	return string(out)
}

// wholeEnd leaves out a character that the cut has split at the end.
func wholeEnd[S string | []byte](b S) S {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(string(b[len(b)-i:])) {
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
