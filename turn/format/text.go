package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// clean makes text that every JSON reader and API takes: valid UTF-8 (which
// has no surrogates) without NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// cleanJSON is clean for JSON, which it makes compact. It fails for what is not
// JSON within maxDepth.
func cleanJSON(raw []byte) (json.RawMessage, bool) {
	tidy, err := compact(raw)
	if err != nil {
		return nil, false
	}
	if !bytes.Contains(tidy, []byte(`\u`)) {
		return tidy, true
	}
	out := make([]byte, 0, len(tidy))
	for i := 0; i < len(tidy); {
		escape, size := nextPiece(tidy[i:])
		out = append(out, escape...)
		i += size
	}
	return out, true
}

// nextPiece takes one byte or escape sequence of valid JSON, and says what to
// write for it: for an escaped NUL or lone surrogate the replacement character.
func nextPiece(raw []byte) (write []byte, size int) {
	switch {
	case raw[0] != '\\':
		return raw[:1], 1
	case raw[1] != 'u':
		return raw[:2], 2
	}
	unit := codeUnit(raw)
	switch {
	case utf16.IsSurrogate(unit) && utf16.DecodeRune(unit, codeUnit(raw[6:])) != utf8.RuneError:
		return raw[:12], 12
	case unit == 0 || utf16.IsSurrogate(unit):
		return []byte(replacement), 6
	}
	return raw[:6], 6
}

// codeUnit is that of the \uXXXX that raw begins with, or 0.
func codeUnit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(unit)
}

// part is one piece of what a model reads: text, or a block of the format.
type part struct {
	text  []byte
	block any
}

// gap is a note in a text where bytes are missing, with the newlines around it.
// Its offsets count the text of all parts.
type gap struct {
	from, to int
	bytes    int64
}

// bound cuts the text of parts, as one, in the middle, where a note says how
// much is left out, with what was missing there before. Blocks stay.
func bound(parts []part, gaps []gap, maxBytes int) []part {
	if sizeOf(parts) <= maxBytes {
		return parts
	}
	first, head := headCut(parts, maxBytes/2)
	last, tail := tailCut(parts, maxBytes/2)
	from, to, left := swallow(gaps, sizeOf(parts[:first])+head, sizeOf(parts[:last])+tail)
	head, tail = from-sizeOf(parts[:first]), to-sizeOf(parts[:last])
	beginning, end := bytes.Clone(parts[first].text[:head]), parts[last].text[tail:]
	beginning = fmt.Appendf(onNewLine(beginning), "[... %d bytes left out ...]\n", left)
	out := append([]part{}, parts[:first]...)
	out = append(out, part{text: beginning})
	for _, p := range parts[first:last] {
		if p.block != nil {
			out = append(out, p)
		}
	}
	if at := len(out) - 1; out[at].block == nil {
		out[at].text = append(out[at].text, end...)
	} else {
		out = append(out, part{text: end})
	}
	return append(out, parts[last+1:]...)
}

// swallow widens a cut to the whole of every gap that it touches, and says how
// many bytes are missing then.
func swallow(gaps []gap, from, to int) (newFrom, newTo int, left int64) {
	newFrom, newTo = from, to
	for _, g := range gaps {
		if g.from < to && from < g.to {
			newFrom, newTo = min(newFrom, g.from), max(newTo, g.to)
			left += g.bytes - int64(g.to-g.from)
		}
	}
	return newFrom, newTo, left + int64(newTo-newFrom)
}

// headCut finds the part and the offset in it where the first room bytes of
// text end, at a character's start.
func headCut(parts []part, room int) (index, offset int) {
	for i, p := range parts {
		if len(p.text) > room {
			for room > 0 && !utf8.RuneStart(p.text[room]) {
				room--
			}
			return i, room
		}
		room -= len(p.text)
	}
	return len(parts) - 1, 0 // all of it has room, and nothing is to be cut
}

// tailCut finds where the last room bytes of text begin, as headCut.
func tailCut(parts []part, room int) (index, offset int) {
	for i := len(parts) - 1; i >= 0; i-- {
		text := parts[i].text
		if len(text) > room {
			offset = len(text) - room
			for offset < len(text) && !utf8.RuneStart(text[offset]) {
				offset++
			}
			return i, offset
		}
		room -= len(text)
	}
	return 0, 0
}

func sizeOf(parts []part) (bytes int) {
	for _, p := range parts {
		bytes += len(p.text)
	}
	return bytes
}

// onNewLine ends text with a newline, unless it is empty.
func onNewLine(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(text, '\n')
}
