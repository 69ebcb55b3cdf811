package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
)

// How text looks: parameters of SGR (ECMA-48). Nothing is told by a colour alone.
const (
	plain, bold, dim, red, chosen, warning = "", "1", "2", "31", "7", "1;35"

	// Of columns; the id takes what is left of the screen.
	toolWidth, stateWidth, workerWidth, elapsedWidth, cpuWidth, memoryWidth = 14, 8, 12, 16, 5, 9
	minID, maxID                                                            = 8, 34
	narrow                                                                  = 80 // screens, with less of tool and elapsed

	keysHelp = "↑↓ choose  a abort call  t abort turn  q quit"
)

// drawer knows the screen.
type drawer struct {
	columns  int
	coloured bool
	workers  bool // there is a column of them
}

// cells are what stands below each other.
type cells struct{ id, tool, state, worker, elapsed, cpu, memory string }

// paint cuts text to the screen and gives it a style.
func (d drawer) paint(text, style string) string {
	text = present.Fit(text, d.columns)
	if !d.coloured || style == plain || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// join puts columns together.
func (d drawer) join(c cells) string {
	toolColumns, elapsedColumns := toolWidth, elapsedWidth
	if d.columns < narrow {
		toolColumns, elapsedColumns = 8, 13
	}
	room := d.columns - 7 - toolColumns - stateWidth - elapsedColumns - cpuWidth - memoryWidth
	if d.workers {
		room -= workerWidth + 1
	}
	room = min(max(room, minID), maxID)
	list := []string{present.Pad("  "+ending(c.id, room-2), room), present.Pad(c.tool, toolColumns), present.Pad(c.state, stateWidth)}
	if d.workers {
		list = append(list, present.Pad(c.worker, workerWidth))
	}
	return strings.Join(append(list, right(c.elapsed, elapsedColumns), right(c.cpu, cpuWidth), right(c.memory, memoryWidth)), " ")
}

func right(text string, columns int) string {
	text = present.Fit(text, columns)
	return strings.Repeat(" ", max(columns-present.Columns(text), 0)) + text
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

// row is one line, a turn's or a call's below it, and one more for a question.
func (d drawer) row(r row, isChosen bool) []string {
	mark, style := "  ", plain
	if isChosen {
		mark, style = "> ", chosen
	}
	if r.call == "" {
		text := mark + terminal.Cell(r.turn) + "  " + r.state
		if r.note != "" {
			text += "  " + r.note
		}
		return []string{d.paint(text, style)}
	}
	lines := []string{d.paint(mark+d.join(r.cells), style)}
	if r.note != "" {
		lines = append(lines, d.paint("     "+r.note, warning))
	}
	return lines
}

// frame is the whole screen, a line each, none wider than columns.
func (m *model) frame(columns, rows int, coloured bool) []string {
	d := drawer{columns: columns, coloured: coloured, workers: slices.ContainsFunc(m.rows, func(r row) bool { return r.worker != "" })}
	header := strings.Replace(d.join(cells{"CALL", "TOOL", "STATE", "WORKER", "ELAPSED", "CPU", "MEMORY"}), "  CALL", "CALL  ", 1)
	lines := []string{d.paint(m.title(), bold), d.paint("  "+header, dim)}
	room := max(rows-len(lines)-2, 0) // below are what was said, and the keys
	var body []string
	from := 0
	for i, r := range m.rows {
		if i == m.place && len(body) >= room {
			from = len(body) - room + 1
		}
		body = append(body, d.row(r, r.key == m.chosen)...)
	}
	if len(m.rows) == 0 && m.problem == "" {
		body = []string{"", d.paint("  nothing runs", dim)}
	}
	lines = append(lines, body[min(from, len(body)):min(from+room, len(body))]...)
	for len(lines) < rows-2 {
		lines = append(lines, "")
	}
	said, style := m.said, plain
	if m.problem != "" {
		said = m.problem
	}
	if m.failed || m.problem != "" {
		style = red
	}
	lines = append(lines, d.paint(said, style), d.paint(keysHelp, dim))
	return lines[max(len(lines)-rows, 0):]
}

// title has the numbers of the calls in each state.
func (m *model) title() string {
	if m.problem != "" { // what runs is not known
		return "toolhost  cut off  " + m.at.Local().Format(time.TimeOnly)
	}
	counts := map[string]int{}
	for _, t := range m.turns {
		for _, c := range t.CurrentTools {
			counts[State(t, c)]++
			counts[""]++
		}
	}
	text := fmt.Sprintf("toolhost  turns %d  running %d", len(m.turns), counts["running"])
	if waiting := counts[""] - counts["running"] - counts["asking"]; waiting > 0 {
		text += fmt.Sprintf("  queued %d", waiting)
	}
	if counts["asking"] > 0 {
		text += fmt.Sprintf("  WAITING FOR YOU %d", counts["asking"])
	}
	if !m.at.IsZero() {
		text += "  " + m.at.Local().Format(time.TimeOnly)
	}
	return text
}
