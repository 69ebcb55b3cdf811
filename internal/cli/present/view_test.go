package present

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
)

// screen is a terminal that knows what a View writes: newlines, carriage
// returns, moving up and erasing what follows. Lines that are too long break.
type screen struct {
	t             *testing.T
	columns, rows int

	mu    sync.Mutex
	lines [][]rune
	x, y  int
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n")))
	for len(text) > 0 {
		switch n := 0; {
		case strings.HasPrefix(text, "\x1b[J"):
			s.at()
			s.lines = s.lines[:s.y+1]
			s.lines[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))]
			text = text[3:]
		case strings.HasPrefix(text, "\x1b["):
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &n); err != nil {
				s.t.Errorf("unknown sequence %.10q", text)
			}
			s.y -= n
			if s.y < 0 || s.y < len(s.lines)-s.rows {
				s.t.Errorf("moved up beyond the screen, to line %d of %d", s.y, len(s.lines))
				s.y = 0
			}
			text = text[strings.Index(text, "A")+1:]
		default:
			r := []rune(text)[0]
			s.put(r)
			text = text[len(string(r)):]
		}
	}
	return len(p), nil
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.x, s.y = 0, s.y+1
		s.at()
	case r == '\r':
		s.x = 0
	case r < 0x20:
		s.t.Errorf("wrote the control character %q", r)
	default:
		if s.x == s.columns {
			s.x, s.y = 0, s.y+1
		}
		s.at()
		s.lines[s.y] = append(s.lines[s.y][:s.x], r)
		s.x++
	}
}

// at makes the line of the cursor.
func (s *screen) at() {
	for len(s.lines) <= s.y {
		s.lines = append(s.lines, nil)
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(string(line) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns, s.rows
}

// still is a View that draws only when it is told to.
func still(t *testing.T, s *screen, o Options) *View {
	t.Helper()
	s.t = t
	return &View{out: s, size: s.size, away: foreground, live: o.Live, calls: calls{single: o.Single}}
}

func foreground() bool { return false }

var began = time.Now()

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

func queued(id, tool string) api.Event {
	return api.Event{Kind: api.EventQueued, CallID: id, Tool: tool, Time: began}
}

func started(id string, timeoutMs int64) api.Event {
	return api.Event{Kind: "tool_started", CallID: id, Time: began, TimeoutMs: timeoutMs}
}

func take(v *View, events ...api.Event) {
	for _, e := range events {
		v.Take(e)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func TestLines(t *testing.T) {
	v := still(t, &screen{columns: 80, rows: 24}, Options{Live: true})
	take(
		v, queued("a", "search"), queued("long-long-long-id-1", "b"), queued("c", "rm\x1b[2J"), queued("d", "x"),
		started("a", 30_000), started("long-long-long-id-1", 0),
		api.Event{Kind: "tool_progress", CallID: "a", Fraction: new(0.5), Message: "half\x1b]0;t\a\nmore"},
		api.Event{Kind: "tool_progress", CallID: "a", ElapsedMs: 5000},
		api.Event{Kind: api.EventInteractionPending, CallID: "c", Pending: new(true), Time: began},
		api.Event{Kind: "tool_timeout", CallID: "long-long-long-id-1"},
	)
	expect(t, v.calls.lines(at(1.5), 79, 23),
		`c                 asking   rm\x1b[2J`,
		`a                 running  search     1.5s of 30s   50%  half\x1b]0;t\x07`,
		`long-long-long-…  stopping b          1.5s`,
		`d                 queued   x`,
	)
	expect(t, v.calls.lines(at(1.5), 40, 3),
		`c  asking   rm\x1b[2J`,
		`a  running  search     1.5s of 30s   50…`,
		`… and 2 more`,
	)
	take(v, api.Event{Kind: api.EventFailed, CallID: "c"}, api.Event{Kind: api.EventFinished, CallID: "a"}, api.Event{Kind: api.EventFinished, CallID: "d"})
	expect(t, v.calls.lines(at(2), 79, 23), `long-long-long-…  stopping b  2.0s`)
}

// A tab would be wider than one column, and break the line.
func TestLinesHaveNoTabs(t *testing.T) {
	v := still(t, &screen{columns: 40, rows: 24}, Options{Live: true, Single: true})
	take(v, queued("a", "x\ty"), started("a", 0), api.Event{Kind: "tool_progress", CallID: "a", Message: strings.Repeat("\t%", 12)})
	expect(t, v.calls.lines(at(1.5), 39, 23), `x\ty  1.5s  \t%\t%\t%\t%\t%\t%\t%\t%\t…`)
}

// A call's time stands still while a human is asked, also by two questions.
func TestClockStandsStill(t *testing.T) {
	v := still(t, &screen{columns: 80, rows: 24}, Options{Live: true, Single: true})
	pending := func(seconds float64, is bool) api.Event {
		return api.Event{Kind: api.EventInteractionPending, CallID: "a", Pending: &is, Time: at(seconds)}
	}
	take(v, queued("a", "x"), started("a", 0), pending(1, true))
	expect(t, v.calls.lines(at(9), 79, 23), "x  1.0s")
	take(v, pending(2, true), pending(5, false))
	expect(t, v.calls.lines(at(9), 79, 23), "x  1.0s")
	take(v, pending(11, false))
	expect(t, v.calls.lines(at(12), 79, 23), "x  2.0s")
}

// What is printed stays, what is drawn is drawn again below it, also when the
// terminal has become narrower.
func TestDraw(t *testing.T) {
	s := &screen{columns: 60, rows: 10}
	v := still(t, s, Options{Live: true})
	take(v, queued("a", strings.Repeat("w", 20)), queued("b", "y"))
	draw := func() {
		v.screen.Lock()
		v.draw()
		v.screen.Unlock()
	}
	draw()
	v.Print("printed\n")
	want := "printed\na  queued   wwwwwwwwwwwwwwwwwwww\nb  queued   y"
	if got := s.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.mu.Lock() // the terminal breaks its lines anew
	s.columns = 16
	s.lines = [][]rune{[]rune("printed"), []rune("a  queued   wwww"), []rune("wwwwwwwwwwwwwwww"), []rune("b  queued   y")}
	s.y, s.x = 3, 13
	s.mu.Unlock()
	draw()
	if got, want := s.text(), "printed\na  queued   ww…\nb  queued   y"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	v.Lock()
	if got := s.text(); got != "printed" {
		t.Errorf("while somebody has the screen it shows\n%s", got)
	}
	v.Print("later\n")
	take(v, api.Event{Kind: api.EventFinished, CallID: "a"})
	if got := s.text(); got != "printed" {
		t.Errorf("while somebody has the screen it shows\n%s", got)
	}
	v.Unlock()
	if got, want := s.text(), "printed\nlater\nb  queued   y"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// In the background nothing is drawn and nothing erased: the lines belong to others.
func TestDrawInTheBackground(t *testing.T) {
	s := &screen{columns: 60, rows: 10}
	v := still(t, s, Options{Live: true})
	away := false
	v.away = func() bool { return away }
	tick := func() {
		v.screen.Lock()
		v.draw()
		v.screen.Unlock()
	}
	take(v, queued("a", "x"), queued("b", "y"))
	tick()
	const drawn = "a  queued   x\nb  queued   y"
	away = true
	_, _ = s.Write([]byte("\n$ typed"))
	tick()
	v.Lock()
	v.Print(" printed\n")
	v.Unlock()
	if got, want := s.text(), drawn+"\n$ typed printed"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	away = false
	tick()
	if got, want := s.text(), drawn+"\n$ typed printed\n"+drawn; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The terminal may change hands while something is drawn: that is then looked at once.
func TestDrawWhileTheTerminalChangesHands(t *testing.T) {
	s := &screen{columns: 60, rows: 10}
	v := still(t, s, Options{Live: true})
	reads := 0
	v.away = func() bool { reads++; return reads%2 == 0 }
	take(v, queued("a", "x"), queued("b", "y"))
	for want := 1; want <= 4; want++ {
		v.screen.Lock()
		v.draw()
		v.screen.Unlock()
		if reads != want {
			t.Fatalf("%d reads for %d drawings", reads, want)
		}
		if want > 2 { // what was drawn before the background is the shell's
			continue
		}
		if got, drawn := s.text(), "a  queued   x\nb  queued   y"; got != drawn {
			t.Errorf("got\n%s\nwant\n%s", got, drawn)
		}
	}
}

// A View that is not live prints and draws nothing.
func TestPlain(t *testing.T) {
	s := &screen{t: t, columns: 60, rows: 10}
	v := newView(s, Options{}, s.size, foreground)
	take(v, queued("a", "x"))
	v.Print("one\n")
	v.Lock()
	v.Print("two\n")
	v.Unlock()
	v.Close()
	if got := s.text(); got != "one\ntwo" {
		t.Errorf("got\n%s", got)
	}
}

// More calls than lines never move the cursor beyond the screen.
func TestManyCalls(t *testing.T) {
	s := &screen{t: t, columns: 30, rows: 5}
	v := newView(s, Options{Live: true}, s.size, foreground)
	for n := range 100 {
		take(v, queued(fmt.Sprint(n), "x"), started(fmt.Sprint(n), 1000))
		v.Print(fmt.Sprintln("printed", n))
	}
	for n := range 100 {
		take(v, api.Event{Kind: api.EventFinished, CallID: fmt.Sprint(n)})
		v.Print(fmt.Sprintln("over", n))
	}
	v.Close()
	if got := s.text(); strings.Count(got, "\n") != 199 || !strings.HasSuffix(got, "over 99") {
		t.Errorf("got\n%s", got)
	}
}
