package conformance

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/terminal"
)

// marks are what people look for in a table.
var marks = map[Status]string{Pass: "pass", Warn: "warn", Fail: "FAIL", Skip: "skip"}

// WriteCheck writes a check as a line of a table, with what to do about it in
// the next.
func WriteCheck(w io.Writer, c Check) error {
	subject := cmp.Or(c.Tool, "-")
	detail := c.Detail
	if c.Status == Fail || c.Status == Warn {
		detail = c.Title + ": " + detail
	}
	_, err := fmt.Fprintf(w, "%s  %-13s  %-12s  %s\n", marks[c.Status], c.ID, terminal.OneLine(subject), terminal.OneLine(detail))
	if err == nil && c.Fix != "" {
		_, err = fmt.Fprintf(w, "      to mend it: %s\n", terminal.OneLine(c.Fix))
	}
	return err
}

// WriteSummary writes the last line.
func (r *Report) WriteSummary(w io.Writer) error {
	parts := []string{fmt.Sprintf("%d passed", r.Count(Pass))}
	for _, p := range []struct {
		status Status
		one    string
		many   string
	}{{Fail, "failed", "failed"}, {Warn, "warning", "warnings"}, {Skip, "not tried", "not tried"}} {
		switch n := r.Count(p.status); {
		case n == 1:
			parts = append(parts, "1 "+p.one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, p.many))
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s, in %s\n", terminal.OneLine(r.Binary), strings.Join(parts, ", "), short(time.Duration(r.ElapsedMs)*time.Millisecond))
	return err
}
