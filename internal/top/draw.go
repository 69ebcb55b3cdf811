package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/present"
	"github.com/toolhost/toolhost/internal/terminal"
)

// style is how a piece of text looks: parameters of SGR (ECMA-48), empty for
// plain. Nothing is told by a colour alone.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	green   style = "32"
	yellow  style = "33"
	red     style = "31"
	chosen  style = "7"
	warning style = "1;35"
)

// Widths of columns. The id takes what is left.
const (
	toolWidth, stateWidth, elapsedWidth, cpuWidth, memoryWidth = 14, 8, 16, 5, 9
	narrowTool, narrowElapsed                                  = 8, 13
	minID, maxID                                               = 8, 34
	narrow                                                     = 80 // columns
)

const (
	keysHelp   = "↑ ↓ choose   a abort the call   t abort its turn   q quit"
	keysNarrow = "↑↓ choose  a abort call  t abort turn  q quit"
)

// frame is the whole screen, a line each, none wider than columns.
func (m *model) frame(columns, rows int, coloured bool) []string {
	d := drawer{columns: columns, coloured: coloured}
	lines := []string{d.paint(m.title(), bold), d.paint(d.header(), dim)}
	room := max(rows-len(lines)-2, 0) // below are what was said, and the keys
	body := m.body(d)
	from := 0
	if at := m.line(); at >= room {
		from = at - room + 1
	}
	shown := body[min(from, len(body)):min(from+room, len(body))]
	lines = append(lines, shown...)
	for len(lines) < rows-2 {
		lines = append(lines, "")
	}
	help := keysHelp
	if columns < narrow {
		help = keysNarrow
	}
	lines = append(lines, m.status(d), d.paint(help, dim))
	return lines[max(len(lines)-rows, 0):]
}

func (m *model) title() string {
	if m.problem != "" { // what runs is not known
		return "toolhost  cut off  " + m.at.Local().Format(time.TimeOnly)
	}
	turns, running, waiting, asking := m.counts()
	text := fmt.Sprintf("toolhost  turns %d  running %d", turns, running)
	if waiting > 0 {
		text += fmt.Sprintf("  queued %d", waiting)
	}
	if asking > 0 {
		text += fmt.Sprintf("  WAITING FOR YOU %d", asking)
	}
	if !m.at.IsZero() {
		text += "  " + m.at.Local().Format(time.TimeOnly)
	}
	return text
}

// status is the line above the keys.
func (m *model) status(d drawer) string {
	switch {
	case m.problem != "":
		return d.paint(m.problem, red)
	case m.failed:
		return d.paint(m.said, red)
	}
	return d.paint(m.said, plain)
}

// body has a line for each row, and one more for each question.
func (m *model) body(d drawer) (lines []string) {
	if len(m.rows) == 0 && m.problem == "" {
		return []string{"", d.paint("  nothing runs", dim)}
	}
	for _, r := range m.rows {
		lines = append(lines, d.row(r, r.key == m.chosen))
		if r.call != "" && r.note != "" {
			lines = append(lines, d.paint("     "+r.note, warning))
		}
	}
	return lines
}

// line is where the chosen row is in the body.
func (m *model) line() int {
	line := 0
	for i := range min(m.place, len(m.rows)) {
		line++
		if m.rows[i].call != "" && m.rows[i].note != "" {
			line++
		}
	}
	return line
}

// drawer knows the screen.
type drawer struct {
	columns  int
	coloured bool
}

// paint cuts text to the screen and gives it a style.
func (d drawer) paint(text string, s style) string { return d.styled(present.Fit(text, d.columns), s) }

func (d drawer) styled(text string, s style) string {
	if !d.coloured || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// widths are those of id, tool and elapsed.
func (d drawer) widths() (id, tool, elapsed int) {
	tool, elapsed = toolWidth, elapsedWidth
	if d.columns < narrow {
		tool, elapsed = narrowTool, narrowElapsed
	}
	gaps := 2 + 5 // the mark, and one between columns
	id = d.columns - gaps - tool - stateWidth - elapsed - cpuWidth - memoryWidth
	return min(max(id, minID), maxID), tool, elapsed
}

func (d drawer) cells(mark, id, tool, state, elapsed, cpu, memory string) []string {
	idWidth, tWidth, eWidth := d.widths()
	return []string{
		mark + present.Pad(id, idWidth), present.Pad(tool, tWidth), present.Pad(state, stateWidth),
		right(elapsed, eWidth), right(cpu, cpuWidth), right(memory, memoryWidth),
	}
}

func (d drawer) header() string {
	return strings.Join(d.cells("  ", "TURN / CALL", "TOOL", "STATE", "ELAPSED", "CPU", "MEMORY"), " ")
}

func right(text string, columns int) string {
	text = present.Fit(text, columns)
	return strings.Repeat(" ", max(columns-present.Columns(text), 0)) + text
}

// row is one line: a turn's, or a call's below it.
func (d drawer) row(r row, isChosen bool) string {
	mark, base := "  ", plain
	if isChosen {
		mark, base = "> ", chosen
	}
	if r.call == "" {
		text := mark + terminal.OneLine(r.turn) + "  " + r.state
		if r.note != "" {
			text += "  " + r.note
		}
		if base == plain {
			base = bold
		}
		return d.paint(text, base)
	}
	idWidth, _, _ := d.widths()
	cells := d.cells(mark, "  "+ending(terminal.OneLine(r.call), idWidth-2), r.tool, r.state, r.elapsed, r.cpu, r.memory)
	whole := strings.Join(cells, " ")
	if isChosen || present.Columns(whole) > d.columns { // no room for styles within
		return d.paint(whole, base)
	}
	cells[3] = d.styled(cells[3], age(r))
	return strings.Join(cells, " ")
}

// ending cuts an id at its beginning, which those of one model have in common.
func ending(id string, columns int) string {
	if present.Columns(id) <= columns {
		return id
	}
	runes, used := []rune(id), 1 // the …
	for i := len(runes) - 1; i >= 0; i-- {
		if used += present.Columns(string(runes[i])); used > columns {
			return "…" + string(runes[i+1:])
		}
	}
	return id
}

// age is the colour of how long a call has run.
func age(r row) style {
	switch {
	case r.elapsed == "":
		return plain
	case r.ran < 10*time.Second:
		return green
	case r.ran < 30*time.Second:
		return yellow
	}
	return red
}
