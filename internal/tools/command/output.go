package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugin/wirejson"
)

// Content is one piece of a command's stdout: text, or a JSON value. Both are
// valid UTF-8; invalid bytes become U+FFFD in text, and are never JSON.
type Content struct {
	Text string
	JSON json.RawMessage
}

// Parsed is what is known when a command's stdout has ended.
type Parsed struct {
	// Content is what was still held back. Where JSON could not be read it is
	// the output as text.
	Content []Content
	// Structured is the value of FormatJSON, or nil.
	Structured json.RawMessage
	// BadLines counts the lines of FormatNDJSON that were not a JSON value and
	// were kept as text; LongLines those that were too long to be read as one.
	BadLines, LongLines int64
	// RedactedLines counts those of BadLines in which a secret was replaced.
	RedactedLines int64
	// Unfit is why JSON of the output is kept as text, though it is JSON: of
	// FormatJSON's value, or of the first of UnfitLines. See wirejson.Clean.
	Unfit      error
	UnfitLines int64
	// Err says where FormatJSON's output is not JSON. It is io.EOF where there was
	// no output at all.
	Err error
}

// MaxLineBytes is the longest line that is read as JSON: one message to a host.
const MaxLineBytes = 256 << 10

// Parser reads a command's stdout as it comes. It holds back at most a
// character of text, a line of NDJSON or the bytes that JSON was granted. It is
// not safe for concurrent use.
type Parser struct {
	format   Format
	max      int
	held     []byte
	textual  bool // what comes is text: JSON was too long, or a line is
	overlong error
	bad      int64
	redacted int64 // of bad
	long     int64
	unfit    int64
	unfitWhy error // of the first
}

// NewParser makes a Parser. maxBytes, at least 1, bounds the value of
// FormatJSON and a line of FormatNDJSON, which has 256 KiB at most.
func NewParser(format Format, maxBytes int) *Parser {
	p := &Parser{format: format, max: max(maxBytes, 1)}
	switch format {
	case FormatJSON:
	case FormatNDJSON:
		p.max = min(p.max, MaxLineBytes)
	default:
		p.textual = true
	}
	return p
}

// Write takes the next bytes and returns what can be shown now.
func (p *Parser) Write(b []byte) []Content {
	if p.format == FormatNDJSON {
		return p.lines(b)
	}
	p.held = append(p.held, b...)
	if !p.textual && len(p.held) > p.max {
		p.textual = true
		p.overlong = fmt.Errorf("the output is not read as JSON: it has more than %d bytes: ask for less, or have the command write a value a line, with format: ndjson", p.max)
	}
	if !p.textual {
		return nil
	}
	return p.text(nil, false)
}

// lines gives out every line that is complete.
func (p *Parser) lines(b []byte) []Content {
	out := make([]Content, 0, bytes.Count(b, []byte("\n"))+1)
	for len(b) > 0 {
		line, rest, complete := bytes.Cut(b, []byte("\n"))
		b = rest
		p.held = append(p.held, line...)
		if complete {
			out = p.line(out)
		} else if p.textual || len(p.held) > p.max {
			p.textual = true
			out = p.text(out, false)
		}
	}
	return out
}

// line ends the line that is held.
func (p *Parser) line(out []Content) []Content {
	line := bytes.Trim(p.held, " \t\r") // JSON's own space
	switch {
	case p.textual || len(p.held) > p.max:
		p.long++
		p.textual = false
		p.held = append(p.held, '\n')
		return p.text(out, true)
	case len(line) == 0:
	default:
		clean, err := wirejson.Clean(line)
		if err != nil {
			p.countOdd(line, err)
			p.held = append(p.held, '\n')
			return p.text(out, true)
		}
		out = append(out, Content{JSON: bytes.Clone(clean)})
	}
	p.held = p.held[:0]
	return out
}

// countOdd counts a line that is kept as text for what is in it.
func (p *Parser) countOdd(line []byte, why error) {
	if !wirejson.IsUnfit(why) {
		p.bad++
		if bytes.Contains(line, []byte(redacted)) {
			p.redacted++
		}
		return
	}
	if p.unfit++; p.unfit == 1 {
		p.unfitWhy = why
	}
}

// text gives out what is held, but for a character that has only begun unless
// nothing more comes.
func (p *Parser) text(out []Content, last bool) []Content {
	whole := p.held
	if !last {
		whole = p.held[:wholeBytes(p.held)]
	}
	if len(whole) == 0 {
		return out
	}
	out = append(out, Content{Text: printable(whole)})
	p.held = append(p.held[:0], p.held[len(whole):]...)
	return out
}

// printable replaces each byte that is not UTF-8, one by one: what comes out must
// not depend on how the output was cut into writes.
func printable(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var text strings.Builder
	text.Grow(len(b))
	for _, r := range string(b) {
		text.WriteRune(r)
	}
	return text.String()
}

// wholeBytes is the length of b without a last character whose bytes are
// still to come.
func wholeBytes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		tail := b[len(b)-back:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// Close ends the output, also where the command was killed in the middle of it.
func (p *Parser) Close() Parsed {
	var parsed Parsed
	switch {
	case p.format == FormatNDJSON && (p.textual || len(p.held) > 0):
		parsed.Content = p.lastLine()
	case p.format == FormatJSON && p.overlong == nil:
		parsed.Structured, parsed.Err = value(p.held)
		if wirejson.IsUnfit(parsed.Err) {
			p.unfitWhy, parsed.Err = parsed.Err, nil
		}
		if parsed.Structured == nil {
			parsed.Content = p.text(nil, true)
		}
	default:
		parsed.Content, parsed.Err = p.text(nil, true), p.overlong
	}
	parsed.BadLines, parsed.RedactedLines, parsed.LongLines = p.bad, p.redacted, p.long
	parsed.UnfitLines, parsed.Unfit = p.unfit, p.unfitWhy
	p.held = nil
	return parsed
}

// lastLine has no end of its own.
func (p *Parser) lastLine() []Content {
	out := p.line(nil)
	if n := len(out); n > 0 && out[n-1].Text != "" {
		out[n-1].Text = out[n-1].Text[:len(out[n-1].Text)-1]
		if out[n-1].Text == "" {
			out = out[:n-1]
		}
	}
	return out
}

// emptyError is io.EOF for who takes no output for an answer.
type emptyError struct{}

func (emptyError) Error() string { return "the output is not JSON: it is empty" }

func (emptyError) Is(target error) bool { return target == io.EOF }

// redacted stands for a secret in what a command has written.
const redacted = "[REDACTED]"

// RedactedRemedy says of output that is not JSON what it may have for a secret, and what
// to do about it.
const RedactedRemedy = redacted + " in the place of a secret, which is JSON in a string alone: have the tool write that as a string"

// value reads one JSON value, the whole output. It says where the command may have
// written JSON, before a secret in it was taken out.
func value(raw []byte) (json.RawMessage, error) {
	read, err := anyValue(raw)
	if read == nil && bytes.Contains(raw, []byte(redacted)) {
		err = fmt.Errorf("%w; it has %s", err, RedactedRemedy)
	}
	return read, err
}

func anyValue(raw []byte) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, emptyError{}
	}
	if at := badByte(raw); at < len(raw) {
		return nil, fmt.Errorf("the output is not JSON: %s: the byte %#02x is not UTF-8", place(raw[:at]), raw[at])
	}
	clean, unfit := wirejson.Clean(raw)
	if unfit == nil || wirejson.IsUnfit(unfit) {
		return bytes.TrimSpace(clean), unfit
	}
	var value json.RawMessage
	err := json.Unmarshal(raw, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("the output is not JSON: %s: %w", place(raw[:max(0, min(int(syntax.Offset)-1, len(raw)))]), err)
	}
	return nil, fmt.Errorf("the output is not JSON: %w", cmp.Or(err, unfit))
}

// badByte is where the first byte is that is not UTF-8.
func badByte(raw []byte) (at int) {
	for at < len(raw) {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	return at
}

// place is where what follows begins.
func place(before []byte) string {
	line := bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("line %d, column %d", line+1, len(before)-bytes.LastIndexByte(before, '\n'))
}
