package present

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
)

// View shows people on a terminal how the calls of a turn go: what was printed,
// and below it one line for each call that is not over, redrawn in place. It
// does nothing but print where it is not live. Its methods may be called from
// any goroutine.
//
// It is a sync.Locker: while somebody else holds the screen, to ask a question
// there, nothing is drawn, and what is printed waits.
type View struct {
	out  io.Writer
	size func() (columns, rows int)
	away func() bool // others have the terminal, and nothing is drawn there
	live bool
	stop chan struct{}
	done chan struct{}

	screen sync.Mutex // what is drawn belongs to whoever holds it
	drawn  []int      // columns of the lines that are on the screen

	mu      sync.Mutex
	printed strings.Builder // and not yet on the screen
	calls   calls
}

// Options of a View.
type Options struct {
	// Live keeps lines for what runs; see CanRedraw.
	Live bool
	// Single: there is only one call, whose id and state tell nobody anything.
	Single bool
}

const drawEvery = 100 * time.Millisecond

// NewView shows a turn on out. Close must be called.
func NewView(out *os.File, o Options) *View {
	size := func() (int, int) {
		columns, rows, err := term.GetSize(int(out.Fd()))
		if err != nil || columns < 2 || rows < 2 {
			return 80, 24
		}
		return columns, rows
	}
	return newView(out, o, size, terminal.InBackground)
}

func newView(out io.Writer, o Options, size func() (int, int), away func() bool) *View {
	v := &View{out: out, size: size, away: away, live: o.Live, stop: make(chan struct{}), done: make(chan struct{}), calls: calls{single: o.Single}}
	go v.run()
	return v
}

// CanRedraw says whether lines can be redrawn on f: it is a terminal that knows
// how, and nobody has asked for plain output (https://no-color.org).
func CanRedraw(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (v *View) run() {
	defer close(v.done)
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.screen.Lock()
			v.draw()
			v.screen.Unlock()
		case <-v.stop:
			return
		}
	}
}

// Take notes what happens.
func (v *View) Take(e api.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls.take(e)
}

// Print prints text, of whole lines, above what is drawn.
func (v *View) Print(text string) {
	v.mu.Lock()
	v.printed.WriteString(text)
	v.mu.Unlock()
	if v.screen.TryLock() { // whoever has it draws later
		v.draw()
		v.screen.Unlock()
	}
}

// Lock takes the screen and clears it of what is drawn.
func (v *View) Lock() {
	v.screen.Lock()
	v.write(v.erase(v.away()))
	v.drawn = nil
}

// Unlock gives the screen back.
func (v *View) Unlock() {
	v.draw()
	v.screen.Unlock()
}

// Close prints the rest and clears the drawn part of the screen.
func (v *View) Close() {
	close(v.stop)
	<-v.done
	v.screen.Lock()
	defer v.screen.Unlock()
	v.mu.Lock()
	v.calls = calls{}
	v.mu.Unlock()
	v.draw()
}

// draw brings the screen up to date in one write. Its caller holds the screen.
func (v *View) draw() {
	columns, rows := v.size()
	away := v.live && v.away() // once: it may change meanwhile
	var lines []string
	v.mu.Lock()
	text := v.printed.String()
	v.printed.Reset()
	if v.live && !away {
		lines = v.calls.lines(time.Now(), columns-1, rows-1)
	}
	v.mu.Unlock()
	if text == "" && len(lines) == 0 && len(v.drawn) == 0 {
		return
	}
	text = v.erase(away) + text + strings.Join(lines, "\r\n")
	v.drawn = v.drawn[:0]
	for _, line := range lines {
		v.drawn = append(v.drawn, Columns(line))
	}
	v.write(text)
}

// write leaves the terminal alone without text: even an empty write would stop a
// process in the background of one that says so (stty tostop).
func (v *View) write(text string) {
	if text != "" {
		_, _ = io.WriteString(v.out, text)
	}
}

// erase goes back to where the drawn lines begin. A terminal that has become
// narrower has broken them. In the background they are left alone: others have
// written below them.
func (v *View) erase(away bool) string {
	if len(v.drawn) == 0 || away {
		return ""
	}
	columns, _ := v.size()
	rows := 0
	for _, w := range v.drawn {
		rows += max(1, (w+columns-1)/columns)
	}
	if rows == 1 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows-1)
}

var _ sync.Locker = (*View)(nil)

// calls are those of a turn that are not over, in their order.
type calls struct {
	single bool
	list   []*call
}

func (c *calls) take(e api.Event) {
	if e.CallID == "" {
		return
	}
	i := slices.IndexFunc(c.list, func(one *call) bool { return one.id == e.CallID })
	switch {
	case e.Kind == api.EventQueued:
		c.list = append(c.list, newCall(e))
	case i < 0:
	case e.Kind == api.EventFinished, e.Kind == api.EventFailed:
		c.list = slices.Delete(c.list, i, i+1)
	default:
		c.list[i].take(e)
	}
}

// lines are at most as many as there is room for: those of calls that need a
// human or run first, then of those that wait, and the rest as a number.
func (c *calls) lines(now time.Time, columns, rows int) (lines []string) {
	ordered := slices.Clone(c.list)
	slices.SortStableFunc(ordered, func(a, b *call) int { return a.rank() - b.rank() })
	rest := 0
	if len(ordered) > rows {
		rest = len(ordered) - (rows - 1)
		ordered = ordered[:rows-1]
	}
	idWidth, toolWidth := 0, 0
	for _, one := range ordered {
		idWidth, toolWidth = max(idWidth, Columns(one.shownID)), max(toolWidth, Columns(one.tool))
	}
	for _, one := range ordered {
		line := one.line(now)
		if !c.single {
			line = fmt.Sprintf("%s  %-8s %s  %s", fill(one.shownID, idWidth), one.state, fill(one.tool, toolWidth), line)
		} else {
			line = one.tool + "  " + line
		}
		lines = append(lines, Fit(strings.TrimRight(line, " "), columns))
	}
	if rest > 0 {
		lines = append(lines, Fit(fmt.Sprintf("… and %d more", rest), columns))
	}
	return lines
}
