// Package waterfall shows where the time of one call went: as bars on a terminal,
// and in Chrome's trace event format for chrome://tracing or ui.perfetto.dev.
package waterfall

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
)

// barWidth is that of the whole time, in characters.
const barWidth = 48

// Draw prints a line for each phase: when it began, what it took, and both as a bar.
// The first begins at the left edge. Parts are set in below their whole.
func Draw(w io.Writer, phases []api.Phase) error {
	if len(phases) == 0 {
		return nil
	}
	zero, whole := span(phases)
	var b strings.Builder
	for _, p := range phases {
		name := p.Name
		if p.Of != "" {
			name = "  " + name
		}
		from, took := p.From.Sub(zero), max(p.To.Sub(p.From), 0)
		fmt.Fprintf(&b, "%-12s %9s %9s  %s\n", name, milliseconds(from), milliseconds(took), bar(from, took, whole))
	}
	fmt.Fprintf(&b, "%-12s %9s %9s\n", "", "", milliseconds(whole))
	_, err := io.WriteString(w, b.String())
	return err
}

// span is when the first phase began, and how long it took to the end of the last.
func span(phases []api.Phase) (zero time.Time, whole time.Duration) {
	zero = phases[0].From
	for _, p := range phases {
		whole = max(whole, p.To.Sub(zero))
	}
	return zero, whole
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

// eighths are blocks of one to eight eighths of a character, from the left.
const eighths = "▏▎▍▌▋▊▉█"

// bar begins at the nearest character, and is an eighth of one long at least.
func bar(from, took, whole time.Duration) string {
	if whole <= 0 {
		return ""
	}
	at := int(from * barWidth / whole)
	length := max(int(took*barWidth*8/whole), 1)
	if at == barWidth { // of the end
		at--
	}
	text := strings.Repeat(" ", at) + strings.Repeat("█", length/8)
	if rest := length % 8; rest > 0 {
		size := utf8.RuneLen('█')
		text += eighths[(rest-1)*size : rest*size]
	}
	return text
}

// event is one of Chrome's trace events (Trace Event Format, "Complete Events" and
// "Metadata Events"). Times are microseconds.
type event struct {
	Name      string         `json:"name"`
	Category  string         `json:"cat,omitempty"`
	Phase     string         `json:"ph"`
	At        float64        `json:"ts"`
	Duration  *float64       `json:"dur,omitempty"`
	Process   int            `json:"pid"`
	Thread    int            `json:"tid"`
	Arguments map[string]any `json:"args,omitempty"`
}

// Write writes the phases of a call as a trace in Chrome's format. Times are those of
// the wall clock when the first phase began.
func Write(w io.Writer, call string, phases []api.Phase) error {
	events := []event{}
	if len(phases) > 0 {
		events = append(events,
			event{Name: "process_name", Phase: "M", Process: 1, Thread: 1, Arguments: map[string]any{"name": "toolhost"}},
			event{Name: "thread_name", Phase: "M", Process: 1, Thread: 1, Arguments: map[string]any{"name": call}})
		zero := phases[0].From
		began := float64(zero.UnixMicro())
		for _, p := range phases {
			took := microseconds(p.To.Sub(p.From))
			events = append(events, event{
				Name: p.Name, Category: "toolhost", Phase: "X", At: began + microseconds(p.From.Sub(zero)), Duration: &took, Process: 1, Thread: 1,
			})
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

func microseconds(d time.Duration) float64 { return float64(max(d, 0).Nanoseconds()) / 1000 }
