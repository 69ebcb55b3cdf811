package present

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// PageColumns is how wide what people read on a terminal may be.
const PageColumns = 100

// gap stands between two columns of a table.
const gap = 2

// Table writes rows of printable cells, the first of which are the headings, in
// columns that fit a page: those that are too wide are wrapped, in words only if
// nothing else helps, but none of the first few, which keep what people copy, as long as others can. A
// row of one cell is a note on the one above it.
func Table(w io.Writer, rows [][]string, first int) error {
	widths := widthsOf(rows)
	narrow(widths, wordsOf(rows), first)
	var out strings.Builder
	for _, row := range rows {
		if len(row) == 1 {
			writeNote(&out, row[0])
			continue
		}
		writeRow(&out, row, widths)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Fits says whether a page has room for the rows of a table as they are.
func Fits(rows [][]string) bool { return over(widthsOf(rows)) <= 0 }

func widthsOf(rows [][]string) []int { return columnsOf(rows, Columns) }

// wordsOf is how wide the longest word of each column is.
func wordsOf(rows [][]string) []int {
	return columnsOf(rows, func(cell string) (longest int) {
		for word := range strings.FieldsSeq(cell) {
			longest = max(longest, Columns(word))
		}
		return longest
	})
}

func columnsOf(rows [][]string, size func(cell string) int) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if len(row) > 1 {
				widths[i] = max(widths[i], size(cell))
			}
		}
	}
	return widths
}

// over is how many columns of the terminal are missing on a page.
func over(widths []int) int {
	n := gap*(len(widths)-1) - PageColumns
	for _, one := range widths {
		n += one
	}
	return n
}

// leastColumn is how wide columns are left while others are wider.
const leastColumn = 8

// narrow takes columns off until a page has room for all: what breaks no word
// first, from the last on, and then off the widest.
func narrow(widths, words []int, first int) {
	for n := over(widths); n > 0; n-- {
		widths[narrower(widths, words, first)]--
	}
}

func narrower(widths, words []int, first int) int {
	for i := len(widths) - 1; i >= first; i-- {
		if widths[i] > words[i] {
			return i
		}
	}
	if i := first + widest(widths[first:]); widths[i] > leastColumn {
		return i
	}
	return widest(widths)
}

func widest(widths []int) (at int) {
	for i, n := range widths {
		if n > widths[at] {
			at = i
		}
	}
	return at
}

func writeNote(out *strings.Builder, note string) {
	const indent = "    "
	for _, line := range Wrap(note, PageColumns-len(indent)) {
		fmt.Fprintln(out, indent+line)
	}
}

// writeRow writes as many lines as its longest cell needs.
func writeRow(out *strings.Builder, row []string, widths []int) {
	cells, lines := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = Wrap(cell, widths[i])
		lines = max(lines, len(cells[i]))
	}
	for n := range lines {
		line := ""
		for i, cell := range cells {
			text := ""
			if n < len(cell) {
				text = cell[n]
			}
			line += fill(text, widths[i]) + strings.Repeat(" ", gap)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}

// Wrap breaks a line, of printable characters, at its spaces, and in words that
// are too long.
func Wrap(line string, columns int) (lines []string) {
	for Columns(line) > columns && utf8.RuneCountInString(line) > 1 {
		used, cut := 0, 0
		for i, r := range line {
			if used += runeWidth(r); used > columns && i > 0 {
				break
			}
			cut = i + len(string(r))
		}
		rest := line[cut:]
		if space := strings.LastIndexByte(line[:min(cut+1, len(line))], ' '); space > 0 {
			cut, rest = space, line[space+1:]
		}
		lines, line = append(lines, line[:cut]), rest
	}
	return append(lines, line)
}
