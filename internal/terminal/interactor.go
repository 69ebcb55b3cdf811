package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// Interactor asks on the controlling terminal, one question at a time. It
// implements turn.Interactor.
type Interactor struct {
	tty *os.File

	asking sync.Mutex
	lines  chan line
	once   sync.Once
}

type line struct {
	text string
	err  error
}

// Open opens the controlling terminal. Without one nobody can be asked there.
func Open() (*Interactor, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask on")
	}
	return &Interactor{tty: tty, lines: make(chan line)}, nil
}

// Close gives the terminal back.
func (i *Interactor) Close() error { return i.tty.Close() }

// Ask shows what is to be decided and waits for an answer, with the time that is
// left counted down.
func (i *Interactor) Ask(ctx context.Context, q turn.Interaction) (turn.Answer, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	if ctx.Err() != nil {
		return turn.Answer{}, ctx.Err()
	}
	if q.Secret {
		return turn.Answer{}, errors.New("a secret is not asked for on a terminal that would show it")
	}
	i.once.Do(func() { go i.read() })
	i.discard()
	fmt.Fprint(i.tty, Question(q))
	answer, err := i.await(ctx, q)
	fmt.Fprintln(i.tty)
	return answer, err
}

// discard drops what was typed before the question could be seen.
func (i *Interactor) discard() {
	for {
		select {
		case _, ok := <-i.lines:
			if !ok {
				return
			}
		case <-time.After(50 * time.Millisecond): // a reader that has a line hands it over at once
			return
		}
	}
}

// read hands lines to whoever asks. It ends with the terminal.
func (i *Interactor) read() {
	in := bufio.NewReaderSize(i.tty, maxLineBytes)
	for {
		text, err := in.ReadString('\n')
		i.lines <- line{strings.TrimSpace(text), err}
		if err != nil && !errors.Is(err, io.EOF) { // Ctrl-D ends a line, not the terminal
			close(i.lines)
			return
		}
	}
}

const maxLineBytes = 64 << 10

// Question is what is shown before the prompt: tool, arguments and what the
// call may touch, with control characters made visible.
func Question(q turn.Interaction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", Escape(q.Prompt, false))
	fmt.Fprintf(&b, "  tool       %s\n", oneLine(q.Tool))
	if len(q.Arguments) > 0 {
		fmt.Fprintf(&b, "  arguments  %s\n", oneLine(cut(string(q.Arguments))))
	}
	fmt.Fprintf(&b, "  may touch  %s\n", Touches(q.Policy))
	return b.String()
}

// maxShown bounds the arguments that are shown.
const maxShown = 2000

func cut(s string) string {
	if r := []rune(s); len(r) > maxShown {
		return fmt.Sprintf("%s… (%d characters more)", string(r[:maxShown]), len(r)-maxShown)
	}
	return s
}

func oneLine(s string) string { return strings.ReplaceAll(Escape(s, false), "\n", `\n`) }

// Touches says in one line what a policy grants.
func Touches(p *supervisor.Policy) string {
	switch {
	case p == nil:
		return "what the host's policy grants"
	case p.Tier == "none":
		return "everything that you may: it has no sandbox"
	}
	var parts []string
	for _, list := range []struct {
		verb  string
		paths []string
	}{{"write ", p.Write}, {"read ", p.Read}} {
		for _, path := range list.paths {
			parts = append(parts, list.verb+oneLine(path))
		}
	}
	if p.Network == "host" {
		parts = append(parts, "the network")
	}
	if len(parts) == 0 {
		return "nothing of yours"
	}
	return strings.Join(parts, ", ")
}

func (i *Interactor) await(ctx context.Context, q turn.Interaction) (turn.Answer, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		i.prompt(q)
		select {
		case got, ok := <-i.lines:
			if !ok {
				return turn.Answer{By: "terminal"}, nil
			}
			if got.err != nil { // Ctrl-D, or no terminal any more
				return turn.Answer{By: "terminal"}, nil
			}
			if a, ok := parse(got.text, q); ok {
				return a, nil
			}
			fmt.Fprintln(i.tty, "  please answer y (yes), n (no) or a (yes, for the rest of this turn)")
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprint(i.tty, "\r\x1b[K  not answered")
			return turn.Answer{}, ctx.Err()
		}
	}
}

func (i *Interactor) prompt(q turn.Interaction) {
	left := max(time.Until(q.ExpiresAt), 0).Round(time.Second)
	choices := "[y/n/a]"
	if len(q.Schema) > 0 {
		choices = "(a JSON value, or n)"
	}
	io.WriteString(i.tty, fmt.Sprintf("\r\x1b[K  allow? %s %s ", choices, left))
}

func parse(text string, q turn.Interaction) (turn.Answer, bool) {
	a := turn.Answer{By: "terminal"}
	switch strings.ToLower(text) {
	case "n", "no":
		return a, true
	case "y", "yes":
		a.Approve = true
		return a, len(q.Schema) == 0
	case "a", "always":
		a.Approve, a.Always = true, true
		return a, len(q.Schema) == 0
	}
	if len(q.Schema) > 0 && text != "" {
		a.Value = []byte(text)
		return a, true
	}
	return a, false
}

// IsTerminal says whether the file is one.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
