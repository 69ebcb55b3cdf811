// Package terminal is what people see of toolhost in a terminal, and how they
// are asked there.
package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/lazy"
)

// colour is the one kind of control sequence that cannot harm a terminal:
// SGR (ECMA-48).
var colour = lazy.Regexp(`^\x1b\[[0-9;:]*m`)

// Escape makes control characters visible. New lines and tabs stay; for a
// command's own output so do colours and carriage returns, which could forge a
// line of ours elsewhere.
func Escape(s string, command bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if command && s[i] == '\r' {
			b.WriteByte('\r')
			i++
			continue
		}
		if command && s[i] == 0x1b {
			if sgr := colour().FindString(s[i:]); sgr != "" {
				b.WriteString(sgr)
				i += len(sgr)
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		writeVisible(&b, r, s[i:i+size])
		i += size
	}
	return b.String()
}

// OneLine is Escape for text of somebody else's in a line of ours.
func OneLine(s string) string { return strings.ReplaceAll(Escape(s, false), "\n", `\n`) }

// Cell is OneLine for a table whose columns tabs part.
func Cell(s string) string { return strings.ReplaceAll(OneLine(s), "\t", `\t`) }

func writeVisible(b *strings.Builder, r rune, raw string) {
	switch {
	case r == '\n' || r == '\t':
		b.WriteString(raw)
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r < 0x20 || isC1(r):
		fmt.Fprintf(b, `\x%02x`, r)
	case turnsText(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteString(raw)
	}
}

// isC1: DEL and the controls that are one byte in 8-bit character sets.
func isC1(r rune) bool { return r >= 0x7f && r < 0xa0 }

// turnsText: the direction of what is around, or the line, which some terminals
// end there.
func turnsText(r rune) bool {
	return r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
