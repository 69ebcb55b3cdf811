package toolrun

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
)

// screen is what the author sees of one call.
type screen struct {
	o       Options
	failed  error // the first write that Out refused
	midLine bool  // Out's last line has no end
	missed  int
}

// begin says what is called.
func (s *screen) begin(request supervisor.Request) {
	s.note("arguments", string(request.Arguments))
	if request.Sandbox != nil && request.Sandbox.Tier == "none" {
		s.note("sandbox", "none: the tool may do what you may (--sandbox for the real thing)")
	}
}

// show prints what happens until the call is over, the last of it too.
func (s *screen) show(events <-chan api.Event, done <-chan struct{}) {
	for {
		select {
		case e := <-events:
			s.event(e)
		case <-done:
			for {
				select {
				case e := <-events:
					s.event(e)
				default:
					return
				}
			}
		}
	}
}

func (s *screen) event(e api.Event) {
	s.missed += e.Missed
	switch e.Kind {
	case api.EventOutput:
		switch {
		case e.Content == nil:
		case e.Stream == "content":
			s.content(*e.Content)
		default:
			s.printed(e.Stream, e.Content.Text)
		}
	case api.EventProgress:
		if text := progress(e); text != "" {
			s.note("progress", text)
		}
	case api.EventLog:
		s.note("log", e.Message)
	case api.EventOverran:
		s.note("overran", "it has passed its soft budget")
	case api.EventTimeout:
		s.note("timeout", "its time is over: it was told to end")
	}
}

func progress(e api.Event) string {
	text := e.Message
	if e.Fraction != nil {
		text = fmt.Sprintf("%3.0f%% %s", *e.Fraction*100, text)
	}
	return text
}

func (s *screen) content(c api.Content) {
	switch c.Type {
	case "text":
		if c.Block {
			s.endLine()
		}
		s.print(c.Text)
	case "json":
		s.line(string(c.JSON))
	case "blob", "resource_link", "resource":
		s.line(present.Placeholder(c))
	}
}

// print puts content as it is on Out.
func (s *screen) print(text string) {
	if text == "" {
		return
	}
	s.midLine = !strings.HasSuffix(text, "\n")
	if s.o.People {
		text = terminal.Escape(text, false)
	}
	if _, err := io.WriteString(s.o.Out, text); err != nil && s.failed == nil {
		s.failed = err
	}
}

// line puts something on a line of its own.
func (s *screen) line(text string) {
	s.endLine()
	s.print(text + "\n")
}

func (s *screen) endLine() {
	if s.midLine {
		s.print("\n")
	}
}

// note is a line about the call.
func (s *screen) note(what, text string) {
	if s.o.People {
		s.endLine()
	}
	fmt.Fprintf(s.o.Err, "  %-9s %s\n", what, terminal.OneLine(strings.TrimRight(text, "\n")))
}

// finish shows what came of it.
func (s *screen) finish(r *api.Result) error {
	s.endLine()
	if len(r.Structured) > 0 {
		s.line(indented(r.Structured))
	}
	for line := range strings.Lines(present.WholeError(r)) {
		s.note("error", line)
	}
	if r.ToolError != nil && r.ToolError.Stack != "" {
		for line := range strings.Lines(r.ToolError.Stack) {
			s.note("stack", line)
		}
	}
	if s.missed > 0 {
		s.note("missed", fmt.Sprintf("%d events came too fast to be shown; --json has all content that was kept", s.missed))
	}
	if t := r.Timing; !present.NeverBegan(r) {
		s.note("timing", fmt.Sprintf("start %s, run %s, grace %s, drain %s", present.Elapsed(t.StartMs), present.Elapsed(t.RunMs), present.Elapsed(t.GraceMs), present.Elapsed(t.DrainMs)))
	}
	fmt.Fprint(s.o.Err, present.Outcome(r))
	return s.failed
}

// printed shows what the tool writes besides its content, as it comes: a line
// may come in pieces.
func (s *screen) printed(stream, text string) {
	for line := range strings.Lines(text) {
		s.note(stream, line)
	}
}

func indented(raw json.RawMessage) string {
	pretty, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(pretty)
}
