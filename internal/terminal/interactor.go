package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/api"
)

// Interactor asks on the controlling terminal, one question at a time. It
// implements turn.Interactor.
//
// While it asks, the terminal is in raw mode: nothing is shown but what is
// typed, and of a secret not even that. Ctrl-C, Ctrl-D and a terminal that goes
// away all mean no.
type Interactor struct {
	// Interrupted, if not nil, is called when Ctrl-C answers an approval,
	// before that answer, a denial, is given.
	Interrupted func()
	// Screen, if not nil, is held while the terminal is used; other writers
	// hold it, too.
	Screen sync.Locker

	tty    *os.File
	asking sync.Mutex
}

// Open opens the controlling terminal. Without one nobody can be asked there.
func Open() (*Interactor, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask on")
	}
	return &Interactor{tty: tty}, nil
}

// Present says whether there is a terminal to ask on.
func Present() bool {
	asks, err := Open()
	if err != nil {
		return false
	}
	_ = asks.Close()
	return true
}

// Close gives the terminal back.
func (i *Interactor) Close() error { return i.tty.Close() }

// OneAtATime implements turn.OneAtATime.
func (i *Interactor) OneAtATime() {}

// by says who answers.
const by = "terminal"

// Ask shows the decision to make and waits for an answer, counting down the time
// left.
func (i *Interactor) Ask(ctx context.Context, q api.Interaction) (api.Answer, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	if ctx.Err() != nil {
		return api.Answer{}, ctx.Err()
	}
	if i.Screen != nil {
		i.Screen.Lock()
		defer i.Screen.Unlock()
	}
	if InBackground() { // to use the terminal would stop this process, and its calls' keeper with it
		fmt.Fprintf(i.tty, "toolhost is in the background and cannot ask: %s: denied\r\n", OneLine(q.Prompt))
		return api.Answer{By: by, Unanswered: api.OutcomeFailed}, nil
	}
	text, short := question(q, cut)
	a, interrupted, err := i.put(ctx, q, text, short)
	if errors.Is(err, errShow) {
		text, _ = question(q, whole)
		a, interrupted, err = i.put(ctx, q, text, true)
	}
	if err != nil {
		return api.Answer{}, err
	}
	if interrupted && IsApproval(q) && i.Interrupted != nil {
		i.Interrupted()
	}
	a.By = by
	return a, nil
}

// put shows a question and reads the answer. The error errShow says that all of
// it is wanted: what was typed before that is shown answers nothing.
func (i *Interactor) put(ctx context.Context, q api.Interaction, text string, short bool) (a api.Answer, interrupted bool, err error) {
	p, err := i.open(ctx, q.ExpiresAt)
	if err != nil {
		return api.Answer{}, false, err
	}
	defer p.close()
	p.say(text)
	a, err = p.answer(q, short)
	switch {
	case errors.Is(err, errShow):
		return api.Answer{}, false, errShow
	case ctx.Err() != nil:
		p.end("not answered")
		return api.Answer{}, false, ctx.Err()
	case err != nil && p.interrupted && IsApproval(q) && i.Interrupted != nil:
		p.end("cancelled")
		return api.Answer{Unanswered: api.OutcomeDismissed}, true, nil
	case err != nil: // ^C, ^D, or a terminal that is gone: no yes
		p.end("denied")
		return api.Answer{Unanswered: api.OutcomeDismissed}, p.interrupted, nil
	}
	return a, p.interrupted, nil
}

// prompt is one question on the terminal in raw mode.
type prompt struct {
	*term.Terminal
	tty         *os.File
	before      *term.State
	expires     time.Time
	stop        func() bool
	interrupted bool
}

// open puts the terminal in raw mode and drops what was typed before the
// question could be seen.
func (i *Interactor) open(ctx context.Context, expires time.Time) (*prompt, error) {
	p := &prompt{tty: i.tty, expires: expires}
	err := Control(i.tty, func(fd int) (err error) {
		p.before, err = term.MakeRaw(fd)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot ask on the terminal: %w", err)
	}
	p.drop()
	if err := i.tty.SetReadDeadline(time.Time{}); err != nil {
		p.close()
		return nil, fmt.Errorf("cannot ask on the terminal: %w", err)
	}
	p.stop = context.AfterFunc(ctx, func() { _ = i.tty.SetReadDeadline(time.Unix(1, 0)) })
	p.Terminal = term.NewTerminal(p, "")
	p.fit()
	return p, nil
}

// typedAhead is how long there is nothing more to be read before what comes is
// taken for an answer.
const typedAhead = 20 * time.Millisecond

// maxDropped bounds what is dropped, should somebody type without end.
const maxDropped = 64 << 10

func (p *prompt) drop() {
	buf := make([]byte, 4096)
	for dropped := 0; dropped < maxDropped; {
		if p.tty.SetReadDeadline(time.Now().Add(typedAhead)) != nil {
			return
		}
		n, err := p.tty.Read(buf)
		if dropped += n; err != nil {
			return
		}
	}
}

func (p *prompt) close() {
	if p.stop != nil {
		p.stop()
	}
	_ = Control(p.tty, func(fd int) error { return term.Restore(fd, p.before) })
}

// Control uses the file's descriptor and leaves the file able to time out.
func Control(f *os.File, use func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	return errors.Join(raw.Control(func(fd uintptr) { used = use(int(fd)) }), used)
}

func (p *prompt) fit() {
	_ = Control(p.tty, func(fd int) error {
		width, height, err := term.GetSize(fd)
		if err == nil && width > 0 {
			err = p.SetSize(width, height)
		}
		return err
	})
}

const ctrlC = 3

// Read is the terminal's, and notes an interrupt.
func (p *prompt) Read(b []byte) (int, error) {
	n, err := p.tty.Read(b)
	for _, c := range b[:n] {
		p.interrupted = p.interrupted || c == ctrlC
	}
	return n, err
}

// Write is the terminal's.
func (p *prompt) Write(b []byte) (int, error) { return p.tty.Write(b) }

// say writes lines above whatever is typed.
func (p *prompt) say(s string) { _, _ = io.WriteString(p.Terminal, s) }

// end says what became of a question that no line has answered.
func (p *prompt) end(s string) { fmt.Fprintf(p.tty, "  %s\r\n", s) }

// line asks for one line, with the time that is left counted down.
func (p *prompt) line(label string, secret bool) (string, error) {
	text := func() string {
		if p.expires.IsZero() {
			return "  " + label + " > "
		}
		return fmt.Sprintf("  %s (%s) > ", label, max(time.Until(p.expires), 0).Round(time.Second))
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() { p.countDown(text, done) })
	defer ticking.Wait()
	defer close(done)
	p.SetPrompt(text())
	if secret {
		return p.ReadPassword(text())
	}
	return p.ReadLine()
}

// countDown rewrites the prompt every second.
func (p *prompt) countDown(text func() string, done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p.expires.IsZero() {
				continue
			}
			p.fit()
			p.SetPrompt(text())
			p.say("") // paints it
		case <-done:
			return
		}
	}
}

// answer reads what the kind of question wants.
func (p *prompt) answer(q api.Interaction, short bool) (api.Answer, error) {
	if q.Secret || len(q.Schema) > 0 {
		value, err := p.form(q)
		return api.Answer{Approve: err == nil, Value: value}, err
	}
	for {
		text, err := p.line(choices(q, short), false)
		if err != nil {
			return api.Answer{}, err
		}
		a, ok, err := parse(text, q, short)
		if ok || err != nil {
			return a, err
		}
		p.say("  " + explain(q, short) + "\n")
	}
}

var errNo = errors.New("nothing was answered")

// form asks for a value field by field.
func (p *prompt) form(q api.Interaction) (json.RawMessage, error) {
	f := readForm(q)
	values := map[string]json.RawMessage{}
	for _, field := range f.fields {
		value, err := p.field(field)
		if err != nil {
			return nil, err
		}
		if value != nil {
			values[field.name] = value
		}
	}
	value, err := f.whole(values)
	if err != nil && !errors.Is(err, errNo) && !q.Secret {
		p.say("  that does not fit: " + OneLine(err.Error()) + "\n")
	}
	return value, err
}

// maxLineRunes is where a term.Terminal silently takes no more.
const maxLineRunes = 4096

// field asks until what is typed fits. An empty line takes the default, leaves
// an optional field out, and otherwise answers nothing at all.
func (p *prompt) field(f field) (json.RawMessage, error) {
	p.say(f.help())
	for {
		text, err := p.line(f.label(), f.secret)
		if err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(text) >= maxLineRunes {
			p.say(fmt.Sprintf("  that is too long: at most %d characters can be typed\n", maxLineRunes-1))
			continue
		}
		if text == "" && f.required && f.preset == nil {
			return nil, errNo
		}
		value, complaint := f.parse(text)
		if complaint == "" {
			return value, nil
		}
		p.say("  " + OneLine(complaint) + "\n")
	}
}
