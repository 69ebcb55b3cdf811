package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
)

// key names a row: a turn, or one of its calls. It stays the same while rows
// above it come and go, so that an abort meets what was chosen.
type key struct{ turn, call string }

// sample is what a call had used at a moment.
type sample struct {
	at  time.Time
	cpu int64 // ms
}

// row is one line of the table.
type row struct {
	key
	cells
	note string // a question, or whose turn it is
}

// model is what is shown. It belongs to one goroutine.
type model struct {
	turns   []api.Turn
	rows    []row
	at      time.Time      // of the turns
	samples map[key]sample // of the calls that run
	chosen  key            // zero means none
	place   int            // where the chosen row is, or was
	problem string         // why the turns are old
	said    string         // what the last key has done
	about   key            // the row that said is about, and goes with; zero means none
	failed  bool           // so it is trouble
}

// take takes what the daemon runs.
func (m *model) take(turns []api.Turn, now time.Time) {
	m.turns, m.at, m.problem = turns, now, ""
	samples := map[key]sample{}
	m.rows = m.rows[:0]
	for _, t := range turns {
		m.rows = append(m.rows, turnRow(t))
		for _, c := range t.CurrentTools {
			k := key{t.TurnID, c.CallID}
			r := callRow(t, c, now)
			if c.Usage != nil {
				samples[k] = sample{now, c.Usage.CPUMs}
				r.cpu = m.samples[k].percent(samples[k])
			}
			m.rows = append(m.rows, r)
		}
	}
	m.samples = samples
	if i := m.find(m.chosen); i >= 0 {
		m.place = i
	} else { // the next key is not to meet another
		m.chosen, m.place = key{}, min(m.place, max(len(m.rows)-1, 0))
	}
	if m.about != (key{}) && m.find(m.about) < 0 {
		m.say("")
	}
}

func (m *model) find(k key) int {
	return slices.IndexFunc(m.rows, func(r row) bool { return r.key == k })
}

// percent is the share of one CPU that was used since then; empty if that is not
// known yet.
func (s sample) percent(now sample) string {
	passed := now.at.Sub(s.at).Milliseconds()
	if s.at.IsZero() || passed <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", max(now.cpu-s.cpu, 0)*100/passed)
}

func turnRow(t api.Turn) row {
	var notes []string
	for name, value := range map[string]string{"agent ": t.AgentID, "session ": t.SessionID, "child of ": t.ParentTurnID} {
		if value != "" {
			notes = append(notes, name+terminal.Cell(value))
		}
	}
	slices.Sort(notes)
	state := "idle"
	if len(t.CurrentTools) > 0 {
		state = fmt.Sprintf("calls: %d now, %d in all", len(t.CurrentTools), t.ToolCallCount)
	}
	return row{key: key{turn: t.TurnID}, cells: cells{state: state}, note: strings.Join(notes, ", ")}
}

func callRow(t api.Turn, c api.CurrentTool, now time.Time) row {
	r := row{key: key{t.TurnID, c.CallID}, cells: cells{
		id: terminal.Cell(c.CallID), tool: terminal.Cell(c.Tool), state: State(t, c), worker: terminal.Cell(c.Worker),
		elapsed: Elapsed(c, now), memory: Memory(c),
	}}
	if q := Question(t, c.CallID); q != nil {
		r.note = "waits for you: " + terminal.Cell(q.Prompt)
	}
	return r
}

// move chooses another row; the first key only shows where it is.
func (m *model) move(by int) {
	m.say("")
	if len(m.rows) == 0 {
		return
	}
	if m.chosen != (key{}) {
		m.place = min(max(m.place+by, 0), len(m.rows)-1)
	}
	m.chosen = m.rows[m.place].key
}

func (m *model) say(format string, args ...any) {
	m.said, m.failed, m.about = terminal.Cell(fmt.Sprintf(format, args...)), false, key{}
}
