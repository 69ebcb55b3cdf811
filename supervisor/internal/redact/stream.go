package redact

// Stream takes secrets out of a text that comes in pieces. It holds back only
// what may be the beginning of a secret, at most one byte less than the longest
// form of one. It is not safe for concurrent use.
type Stream struct {
	set    *Set
	scans  *scanner // of set; nil before it is needed
	buf    []byte   // what is held is buf[from:]
	from   int
	base   int64  // the offset in the text of what is held
	spans  []span // those that are not given out in full, in order
	hiding bool   // the byte before what is held was a secret's
	out    []byte
}

// NewStream begins a stream.
func (s *Set) NewStream() *Stream { return &Stream{set: s} }

// Use goes on with another Set, such as one With a secret that has just become
// known. Text that was given out by then stays; text that is held back is
// searched again.
func (s *Stream) Use(set *Set) {
	before := s.spans
	s.set, s.scans, s.spans = set, nil, nil
	s.scan(s.buf[s.from:], s.base)
	s.spans = joined(nil, append(before, s.spans...))
}

// Write takes the next piece and returns what can be shown now: valid until the
// next call, and perhaps in p's memory.
func (s *Stream) Write(p []byte) []byte {
	held := len(s.buf) - s.from
	s.scan(p, s.base+int64(held))
	if held > 0 || len(s.spans) > 0 {
		s.hold(p)
		return s.release(s.decided())
	}
	shown := max(0, len(p)-s.depth())
	s.hold(p[shown:])
	s.base += int64(shown)
	s.hiding = s.hiding && shown == 0
	return p[:shown]
}

// Close ends the stream and returns the rest.
func (s *Stream) Close() []byte { return s.release(len(s.buf) - s.from) }

// Restart begins the stream anew, after Close.
func (s *Stream) Restart() {
	*s = Stream{set: s.set, buf: s.buf[:0], spans: s.spans[:0], out: s.out[:0]}
}

// decided is how much of what is held no later byte can change: what begins no
// secret, and what is one.
func (s *Stream) decided() int {
	end := s.base + int64(max(0, len(s.buf)-s.from-s.depth()))
	for _, found := range s.spans {
		if found.start <= end && end < found.end {
			end = found.end
		}
	}
	return int(end - s.base)
}

// depth is how much of the text may be the beginning of a secret, or of one
// more.
func (s *Stream) depth() int {
	if s.scans == nil {
		return 0
	}
	return s.scans.held()
}

// scan looks for secrets in p, which stands at offset.
func (s *Stream) scan(p []byte, offset int64) {
	if s.set == nil {
		return
	}
	if s.scans == nil {
		s.scans = newScanner(s.set.machine)
	}
	s.spans = s.scans.scan(p, offset, s.spans)
}

// hold keeps p behind what is held. Moving to the front only once half of the
// buffer is free makes many small writes cost no more than few.
func (s *Stream) hold(p []byte) {
	if s.from > len(s.buf)/2 || s.from == len(s.buf) {
		s.buf = s.buf[:copy(s.buf, s.buf[s.from:])]
		s.from = 0
	}
	s.buf = append(s.buf, p...)
}

// release gives out the first n bytes that are held, which cut through no span.
func (s *Stream) release(n int) []byte {
	out := s.out[:0]
	end := s.base + int64(n)
	for len(s.spans) > 0 && s.spans[0].start < end {
		out = s.show(out, s.spans[0].start)
		out = s.hide(out, s.spans[0].end)
		s.spans = s.spans[1:]
	}
	s.out = s.show(out, end)
	return s.out
}

// show gives out what is held before an offset.
func (s *Stream) show(out []byte, until int64) []byte {
	if n := int(until - s.base); n > 0 {
		out = append(out, s.buf[s.from:s.from+n]...)
		s.drop(n)
		s.hiding = false
	}
	return out
}

// hide gives out the replacement instead, once for a span.
func (s *Stream) hide(out []byte, until int64) []byte {
	if n := int(until - s.base); n > 0 {
		if !s.hiding {
			out = append(out, Replacement...)
		}
		s.drop(n)
		s.hiding = true
	}
	return out
}

func (s *Stream) drop(n int) {
	s.from += n
	s.base += int64(n)
}
