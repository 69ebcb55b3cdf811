package present

// Fit cuts a line, of printable characters, to a number of columns of a
// terminal.
func Fit(line string, columns int) string {
	if columns < 1 {
		return ""
	}
	return fit(line, columns)
}

// Pad cuts or fills text, of printable characters, to exactly that many columns.
func Pad(text string, columns int) string { return pad(Fit(text, columns), columns) }

// Columns is how many columns a terminal needs for text, at most.
func Columns(text string) int { return width(text) }
