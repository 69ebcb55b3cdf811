package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/api"
)

// asker asks a human for y or n, one question at a time; it is a
// turn.Interactor. Nothing but a y that was typed as the answer to the very
// question approves: a line that was begun for an earlier question, which has
// timed out since, answers no other.
type asker struct {
	out    io.Writer
	slot   chan struct{} // full while somebody asks
	wanted chan struct{} // has the reader read one line
	lines  chan string   // closed at the end of input

	// State of the slot's holder: a line is being read; it was for an earlier
	// question.
	reading, stale bool
}

// newAsker reads in, for as long as the program runs.
func newAsker(in io.Reader, out io.Writer) *asker {
	a := &asker{out: out, slot: make(chan struct{}, 1), wanted: make(chan struct{}, 1), lines: make(chan string, 1)}
	go func() {
		defer close(a.lines)
		lines := bufio.NewScanner(in)
		for range a.wanted {
			if !lines.Scan() {
				return
			}
			a.lines <- lines.Text()
		}
	}()
	return a
}

// Ask waits for its turn, and then for a line.
func (a *asker) Ask(ctx context.Context, i api.Interaction) (api.Answer, error) {
	select {
	case a.slot <- struct{}{}:
		defer func() { <-a.slot }()
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
	if i.Secret || len(i.Schema) > 0 {
		fmt.Fprintf(a.out, "[%s] asks for more than y or n, which cannot be given here: %s\n", oneLine(i.CallID+" "+i.Tool), oneLine(i.Prompt))
		return api.Answer{By: "agent", Unanswered: api.OutcomeFailed}, nil
	}
	question := fmt.Sprintf("[%s] %s %s [y/N] ", oneLine(i.CallID+" "+i.Tool), oneLine(i.Prompt), oneLine(string(i.Arguments)))
	fmt.Fprint(a.out, question)
	for {
		line, err := a.line(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return api.Answer{By: "terminal", Unanswered: api.OutcomeFailed}, nil
		case err != nil:
			return api.Answer{}, err
		}
		if !a.stale {
			yes := strings.EqualFold(strings.TrimSpace(line), "y")
			return api.Answer{Approve: yes, By: "terminal"}, nil
		}
		a.stale = false
		fmt.Fprint(a.out, "(that came too late for the last question)\n"+question)
	}
}

// line reads one; io.EOF says that the input is over, and nobody is there.
func (a *asker) line(ctx context.Context) (string, error) {
	if !a.reading {
		a.wanted <- struct{}{}
		a.reading = true
	}
	select {
	case line, ok := <-a.lines:
		if !ok {
			return "", io.EOF
		}
		a.reading = false
		return line, nil
	case <-ctx.Done():
		a.stale = true
		fmt.Fprintln(a.out)
		return "", ctx.Err()
	}
}

// printable makes foreign text fit for a terminal: what would move the cursor,
// change colours or turn the direction of writing is replaced.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// oneLine is printable text that cannot pass for a line of the agent's own.
func oneLine(s string) string { return strings.ReplaceAll(printable(s), "\n", `\n`) }
