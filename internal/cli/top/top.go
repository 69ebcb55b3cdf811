// Package top shows what a daemon runs as a table on a terminal that is kept up
// to date, and aborts what is chosen there.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Daemon is what is watched; *client.Client is one.
type Daemon interface {
	Active(ctx context.Context) ([]api.Turn, error)
	Abort(ctx context.Context, turnID string) error
	AbortCall(ctx context.Context, turnID, callID string) error
}

// Options of Run.
type Options struct {
	// TTY is the terminal: keys are read from it, and the table is drawn there.
	// It must be able to time out, as /dev/tty opened by os.OpenFile.
	TTY *os.File
	// Coloured: with colours; without them nothing is lost.
	Coloured bool
	// Every is how often the daemon is asked; 0 is once a second.
	Every time.Duration
	// Problem says an error in one line; nil is its own text.
	Problem func(error) string
}

// Sequences of xterm that every terminal of today knows.
const (
	enter = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	erase = "\x1b[K" // the rest of the line
	below = "\x1b[J"
)

// Run shows the table until q is pressed, a signal ends it, or ctx. The terminal
// is left as it was. A daemon that goes away is waited for.
func Run(ctx context.Context, daemon Daemon, o Options) error {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Problem == nil {
		o.Problem = error.Error
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	before, err := makeRaw(o.TTY)
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	_, _ = io.WriteString(o.TTY, enter)
	defer func() {
		_, _ = io.WriteString(o.TTY, leave)
		_ = terminal.Control(o.TTY, func(fd int) error { return term.Restore(fd, before) })
	}()
	s := &screen{daemon: daemon, o: o, polls: make(chan poll, 1), done: make(chan outcome, maxAborts)}
	return s.run(ctx)
}

// poll is an answer of the daemon's.
type poll struct {
	turns []api.Turn
	err   error
}

// outcome is what became of an abort.
type outcome struct {
	of   key
	what string
	err  error
}

// maxAborts bounds the aborts that the daemon has not answered.
const maxAborts = 16

// askTimeout bounds the wait for an answer of a daemon that hangs.
const askTimeout = 10 * time.Second

type screen struct {
	daemon  Daemon
	o       Options
	m       model
	polling bool
	polls   chan poll
	aborts  int
	done    chan outcome
	waiting sync.WaitGroup
}

func (s *screen) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	keys, lost := s.readKeys()
	defer s.waiting.Wait()
	defer func() { _ = s.o.TTY.SetReadDeadline(time.Unix(1, 0)) }()
	defer cancel()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	s.poll(ctx)
	for {
		s.draw()
		select {
		case <-tick.C:
			s.poll(ctx)
		case p := <-s.polls:
			s.polling = false
			s.took(p)
		case d := <-s.done:
			s.aborts--
			s.showOutcome(d)
			s.poll(ctx)
		case list := <-keys:
			if s.pressed(ctx, list) {
				return nil
			}
		case <-resized:
		case err := <-lost:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// readKeys reads until the terminal's deadline, or its end.
func (s *screen) readKeys() (keys <-chan []press, lost <-chan error) {
	read, failed := make(chan []press, 64), make(chan error, 1)
	s.waiting.Go(func() {
		buf := make([]byte, 256)
		for {
			n, err := s.o.TTY.Read(buf)
			if list := decode(buf[:n]); len(list) > 0 {
				select {
				case read <- list:
				default: // more keys than anybody means
				}
			}
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					failed <- fmt.Errorf("the terminal is gone: %w", err)
				}
				return
			}
		}
	})
	return read, failed
}

// poll asks the daemon, unless it has not answered yet.
func (s *screen) poll(ctx context.Context) {
	if s.polling {
		return
	}
	s.polling = true
	s.waiting.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		turns, err := s.daemon.Active(ctx)
		s.polls <- poll{turns, err}
	})
}

func (s *screen) took(p poll) {
	if p.err != nil {
		s.m.take(nil, time.Now())
		s.m.problem = terminal.Cell(s.o.Problem(p.err))
		return
	}
	s.m.take(p.turns, time.Now())
}

// pressed does what the keys say; true is to quit.
func (s *screen) pressed(ctx context.Context, list []press) (quit bool) {
	for _, p := range list {
		switch p {
		case pressQuit:
			return true
		case pressUp:
			s.m.move(-1)
		case pressDown:
			s.m.move(1)
		case pressFirst:
			s.m.move(-len(s.m.rows))
		case pressLast:
			s.m.move(len(s.m.rows))
		case pressAbortCall, pressAbortTurn:
			s.abort(ctx, p == pressAbortTurn)
		}
	}
	return false
}

func (s *screen) abort(ctx context.Context, whole bool) {
	k := s.m.chosen
	switch {
	case k == key{}:
		s.m.say("nothing is chosen: choose with ↑ and ↓")
		return
	case !whole && k.call == "":
		s.m.say("this is a turn: t aborts it, with all its calls")
		return
	case s.aborts >= maxAborts:
		s.m.say("the daemon has not answered the last aborts yet")
		return
	}
	s.aborts++
	s.waiting.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		if whole {
			s.done <- outcome{key{turn: k.turn}, "turn " + k.turn, s.daemon.Abort(ctx, k.turn)}
			return
		}
		s.done <- outcome{k, "call " + k.call, s.daemon.AbortCall(ctx, k.turn, k.call)}
	})
}

func (s *screen) showOutcome(d outcome) {
	if d.err != nil {
		s.m.say("%s: %s", d.what, s.o.Problem(d.err))
		s.m.failed = true
		return
	}
	s.m.say("aborting %s; again kills at once", d.what)
	s.m.about = d.of
}

// draw writes the whole screen at once. Lines end where they are cut: a terminal
// that becomes narrower meanwhile breaks none that the next drawing leaves.
func (s *screen) draw() {
	columns, rows := 80, 24
	_ = terminal.Control(s.o.TTY, func(fd int) error {
		c, r, err := term.GetSize(fd)
		if err == nil && c > 1 && r > 1 {
			columns, rows = c, r
		}
		return nil
	})
	lines := s.m.frame(columns-1, rows, s.o.Coloured)
	_, _ = io.WriteString(s.o.TTY, home+strings.Join(lines, erase+"\r\n")+erase+below)
}

func makeRaw(tty *os.File) (before *term.State, err error) {
	err = terminal.Control(tty, func(fd int) (err error) {
		before, err = term.MakeRaw(fd)
		return err
	})
	return before, err
}
