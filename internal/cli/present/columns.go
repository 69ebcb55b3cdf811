package present

import "strings"

// Fit cuts a line, of printable characters, to a number of columns of a
// terminal.
func Fit(line string, columns int) string {
	if columns < 1 {
		return ""
	}
	if Columns(line) <= columns {
		return line
	}
	used := 0
	for i, r := range line {
		if used += runeWidth(r); used > columns-1 {
			return line[:i] + "…"
		}
	}
	return line
}

// Pad cuts or fills text, of printable characters, to exactly that many columns.
func Pad(text string, columns int) string { return fill(Fit(text, columns), columns) }

// fill appends spaces up to that many columns.
func fill(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-Columns(text), 0))
}

// Columns is how many columns a terminal needs for text, at most.
func Columns(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

// runeWidth is 2 for all that might be wide: from Hangul Jamo on, but not what
// comes before the first emoji.
func runeWidth(r rune) int {
	if r < 0x1100 || r >= 0x1160 && r < 0x231A {
		return 1
	}
	return 2
}
