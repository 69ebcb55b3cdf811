package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/toolhost/toolhost/internal/signals"
)

// onSignals calls end with 1 at the first signal that wants this process to
// end, with 2 at the second, and so on, until release, which waits for it.
func onSignals(end func(n int)) (release func()) {
	caught, done := make(chan os.Signal, 4), make(chan struct{})
	// SIGPIPE is only to be an error of the write: calls must still be ended,
	// and results are still wanted.
	signal.Notify(caught, append(signals.NotIgnored(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT), syscall.SIGPIPE)...)
	go func() {
		defer close(done)
		n := 0
		for s := range caught {
			if s != syscall.SIGPIPE {
				n++
				end(n)
			}
		}
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
		<-done
	}
}
