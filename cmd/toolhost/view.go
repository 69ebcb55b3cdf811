package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/supervisor"
)

// runView says how a call is shown while it runs.
type runView struct {
	// command: the call's own output goes to the terminal as it comes, so a
	// live line would be in its way.
	command bool
}

// eventBuffer is how many events wait for a slow reader before it misses some.
const eventBuffer = 1024

// runCall runs one call, shows what happens and turns the first Ctrl-C into
// the kill ladder, the second into a kill.
func runCall(host *supervisor.Supervisor, request supervisor.Request, flags *callFlags, view runView) *supervisor.Result {
	if flags.unsafe {
		fmt.Fprintln(os.Stderr, "toolhost: WARNING: no sandbox: this call may read, change and send all that you may")
	}
	events := make(chan supervisor.Event, eventBuffer)
	live := !flags.quiet && !flags.json && !flags.events && !view.command && term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == ""
	if flags.events || live {
		request.Events = events
	}
	signals := make(chan os.Signal, 4)
	// SIGPIPE is only to be an error of the write: the call must still be ended.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	defer signal.Stop(signals)
	call := startCall(host, request, signals)
	var shown sync.WaitGroup
	switch {
	case flags.events:
		shown.Go(func() { printEvents(events, call.Done()) })
	case live:
		shown.Go(func() { showLive(events, call.Done()) })
	}
	abortOnSignal(call, signals)
	shown.Wait()
	return call.Result()
}

// startCall starts the call; a signal meanwhile aborts what comes before it.
func startCall(host *supervisor.Supervisor, request supervisor.Request, signals <-chan os.Signal) *supervisor.Call {
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan *supervisor.Call, 1)
	go func() { started <- host.Start(ctx, request) }()
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGPIPE {
				cancel()
			}
		case call := <-started:
			go func() { <-call.Done(); cancel() }() // ctx lasts as long as the call
			return call
		}
	}
}

// abortOnSignal waits for the call; every signal meanwhile is an abort.
func abortOnSignal(call *supervisor.Call, signals <-chan os.Signal) {
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGPIPE {
				call.Abort(supervisor.AbortUser)
			}
		case <-call.Done():
			return
		}
	}
}

// printEvents prints one JSON event a line on stderr, the last ones too.
func printEvents(events <-chan supervisor.Event, done <-chan struct{}) {
	out := json.NewEncoder(os.Stderr)
	for {
		select {
		case e := <-events:
			_ = out.Encode(e)
		case <-done:
			for {
				select {
				case e := <-events:
					_ = out.Encode(e)
				default:
					return
				}
			}
		}
	}
}

const (
	liveEvery = 100 * time.Millisecond
	clearLine = "\r\x1b[K"
)

// showLive keeps one line on the terminal: tool, time, last progress.
func showLive(events <-chan supervisor.Event, done <-chan struct{}) {
	began := time.Now()
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	defer fmt.Fprint(os.Stderr, clearLine)
	var tool, limit, progress string
	for {
		select {
		case e := <-events:
			tool = e.Tool
			if e.Kind == supervisor.EventStarted && e.TimeoutMs > 0 {
				limit = " of " + elapsed(e.TimeoutMs)
			}
			if text := progressText(e); text != "" {
				progress = text
			}
		case <-tick.C:
			fmt.Fprint(os.Stderr, clearLine+fit(fmt.Sprintf("%s  %.1fs%s  %s", terminal.Escape(tool, false), time.Since(began).Seconds(), limit, progress)))
		case <-done:
			return
		}
	}
}

func progressText(e supervisor.Event) string {
	if e.Kind != supervisor.EventProgress || e.Message == "" && e.Fraction == nil {
		return ""
	}
	text := terminal.Escape(firstLine(e.Message), false)
	if e.Fraction != nil {
		text = fmt.Sprintf("%3.0f%%  %s", *e.Fraction*100, text)
	}
	return text
}

// fit cuts a line to the terminal's width.
func fit(line string) string {
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width <= 1 {
		width = 80
	}
	if r := []rune(line); len(r) >= width {
		return string(r[:width-1])
	}
	return line
}
