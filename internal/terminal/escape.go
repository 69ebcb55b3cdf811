// Package terminal is what people see of toolhost in a terminal, and how they
// are asked there.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/lazy"
)

// colour is the one kind of control sequence that cannot harm a terminal:
// SGR (ECMA-48).
var colour = lazy.Regexp(`^\x1b\[[0-9;:]*m`)

// Escape makes characters visible that control, or that show as nothing. New lines
// and tabs stay, and what output has for good reasons (ofWriting); for a command's
// own output so do colours and carriage returns, which could forge a line of ours
// elsewhere.
func Escape(s string, command bool) string { return escape(s, command, ofWriting) }

// escape leaves the characters of keep as they are.
func escape(s string, command bool, keep *unicode.RangeTable) string {
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
		if unicode.Is(keep, r) {
			b.WriteString(s[i : i+size])
		} else {
			writeVisible(&b, r, s[i:i+size])
		}
		i += size
	}
	return b.String()
}

// OneLine is Escape for text of somebody else's in a line of ours, such as what a
// human is to approve: nothing in it may be unseen.
func OneLine(s string) string {
	return strings.ReplaceAll(escape(s, false, &unicode.RangeTable{}), "\n", `\n`)
}

// Cell is OneLine for a table whose columns tabs part, and for a line that must fit
// a terminal: a tab is as wide as where it stands makes it.
func Cell(s string) string { return strings.ReplaceAll(OneLine(s), "\t", `\t`) }

func writeVisible(b *strings.Builder, r rune, raw string) {
	switch {
	case r == '\n' || r == '\t':
		b.WriteString(raw)
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r < 0x20 || isC1(r):
		fmt.Fprintf(b, `\x%02x`, r)
	case unseen(r) && r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	case unseen(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteString(raw)
	}
}

// isC1: DEL and the controls that are one byte in 8-bit character sets.
func isC1(r rune) bool { return r >= 0x7f && r < 0xa0 }

// unseen characters show as nothing, or change the direction of what is around or
// the line, which some terminals end there. The console's format.js has the same.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == brailleBlank
}

const brailleBlank = 0x2800

// ofWriting are the unseen characters that ordinary output has: soft hyphens, what
// joins letters and emoji or picks how one looks, and the blanks of plots.
var ofWriting = &unicode.RangeTable{
	R16:         []unicode.Range16{{Lo: 0xad, Hi: 0xad, Stride: 1}, {Lo: 0x200c, Hi: 0x200d, Stride: 1}, {Lo: brailleBlank, Hi: brailleBlank, Stride: 1}, {Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}},
	LatinOffset: 1,
}
