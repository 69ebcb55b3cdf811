package redact

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// decoding finds secrets in what a text's escapes stand for. Each encoder has its own
// choice of what it escapes.
type decoding struct {
	begin  byte // what an escape begins with
	escape func(text []byte) (stands []byte, state escapeState)

	node   int32
	part   []byte  // an escape that is not whole yet
	starts []int64 // where the last decoded bytes began, a ring
	count  int     // of decoded bytes
}

type escapeState int

const (
	whole  escapeState = iota
	partly             // more is needed to tell
	wrong              // it is not an escape
)

// scanner finds secrets as they are, and behind escapes.
type scanner struct {
	machine   *machine
	node      int32
	decodings [2]decoding
	end       int64 // of what was scanned
}

func newScanner(m *machine) *scanner {
	return &scanner{machine: m, decodings: [2]decoding{{begin: '%', escape: percent}, {begin: '\\', escape: jsonEscape}}}
}

// scan goes on through text, which stands at offset, and adds what it finds to spans.
func (s *scanner) scan(text []byte, offset int64, spans []span) []span {
	s.end = offset + int64(len(text))
	var found []span
	s.node, found = scan(s.machine, s.node, text, offset, nil)
	for i := range s.decodings {
		found = append(found, s.decodings[i].scan(s.machine, text, offset)...)
	}
	return joined(spans, found)
}

// held is how much of the text's end may be the beginning of a secret.
func (s *scanner) held() int {
	held := int(s.machine.nodes[s.node].depth)
	for i := range s.decodings {
		held = max(held, s.decodings[i].held(s.machine, s.end))
	}
	return held
}

// joined are spans, and others in any order that end behind them, each with those that it
// touches.
func joined(spans, more []span) []span {
	slices.SortFunc(more, func(a, b span) int { return cmp.Compare(a.end, b.end) })
	for _, one := range more {
		spans = join(spans, one)
	}
	return spans
}

// scan goes on through text, which stands at offset.
func (d *decoding) scan(m *machine, text []byte, offset int64) (spans []span) {
	if d.idle(text) { // what is left behind may begin one
		skipped := max(0, len(text)-m.longest)
		text, offset = text[skipped:], offset+int64(skipped)
	}
	for i, letter := range text {
		end := offset + int64(i) + 1
		if len(d.part) == 0 && letter != d.begin {
			spans = d.take(m, letter, end-1, end, spans)
			continue
		}
		d.part = append(d.part, letter)
		for len(d.part) > 0 {
			stands, state := d.escape(d.part)
			if state == partly {
				break
			}
			n, from := len(d.part), end-int64(len(d.part))
			if state == wrong { // its first byte stands for itself
				n, stands = 1, d.part[:1]
			}
			for _, b := range stands {
				spans = d.take(m, b, from, from+int64(n), spans)
			}
			d.part = d.part[:copy(d.part, d.part[n:])]
			for len(d.part) > 0 && d.part[0] != d.begin {
				at := end - int64(len(d.part))
				spans = d.take(m, d.part[0], at, at+1, spans)
				d.part = d.part[:copy(d.part, d.part[1:])]
			}
		}
	}
	return spans
}

// idle: what has no escapes is found as it is.
func (d *decoding) idle(text []byte) bool {
	return d.node == 0 && len(d.part) == 0 && bytes.IndexByte(text, d.begin) < 0
}

// take goes on by one decoded byte, which the text has from start to end.
func (d *decoding) take(m *machine, b byte, start, end int64, spans []span) []span {
	if d.node = m.next(d.node, b); d.node == 0 {
		return spans
	}
	if len(d.starts) < m.longest {
		d.starts = make([]int64, m.longest)
	}
	d.starts[d.count%len(d.starts)] = start
	d.count++
	if n := int(m.nodes[d.node].match); n > 0 {
		spans = join(spans, span{d.starts[(d.count-n)%len(d.starts)], end})
	}
	return spans
}

// held is how much of a text that ends at an offset may be the beginning of a secret.
func (d *decoding) held(m *machine, end int64) int {
	if depth := int(m.nodes[d.node].depth); depth > 0 {
		return int(end - d.starts[(d.count-depth)%len(d.starts)])
	}
	return len(d.part)
}

func percent(text []byte) ([]byte, escapeState) {
	value, ok := hex(text[1:])
	switch {
	case !ok:
		return nil, wrong
	case len(text) < 3:
		return nil, partly
	}
	return []byte{byte(value)}, whole
}

var jsonLetters = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '\'': '\''}

func jsonEscape(text []byte) ([]byte, escapeState) {
	if len(text) == 1 {
		return nil, partly
	}
	if letter, ok := jsonLetters[text[1]]; ok {
		return []byte{letter}, whole
	}
	first, state := unit(text)
	if state != whole || !utf16.IsSurrogate(rune(first)) {
		return utf8.AppendRune(nil, rune(first)), state
	}
	if len(text) == 6 {
		return nil, partly
	}
	second, state := unit(text[6:])
	if both := utf16.DecodeRune(rune(first), rune(second)); state == whole && both == utf8.RuneError {
		return nil, wrong
	} else if state == whole {
		return utf8.AppendRune(nil, both), whole
	}
	return nil, state
}

// unit is \uXXXX.
func unit(text []byte) (value uint32, state escapeState) {
	switch {
	case text[0] != '\\' || len(text) > 1 && text[1] != 'u':
		return 0, wrong
	case len(text) < 2:
		return 0, partly
	}
	digits := text[2:min(len(text), 6)]
	value, ok := hex(digits)
	switch {
	case !ok:
		return 0, wrong
	case len(digits) < 4:
		return 0, partly
	}
	return value, whole
}

// hex is the value of digits of either case.
func hex(digits []byte) (value uint32, ok bool) {
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			value = value<<4 | uint32(d-'0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			value = value<<4 | uint32(d|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return value, true
}
