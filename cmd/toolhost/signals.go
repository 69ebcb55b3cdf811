package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// stays says whether a signal was ignored when this process was started, as with nohup(1) or
// in the background of a script, and so is not for it. Go knows that of SIGHUP and SIGINT alone.
func stays(s os.Signal) bool { return s != syscall.SIGPIPE && signal.Ignored(s) }

// onSignals calls end with 1 at the first signal that wants this process to
// end, with 2 at the second, and so on, until release, which waits for it.
func onSignals(end func(n int)) (release func()) {
	signals, done := make(chan os.Signal, 4), make(chan struct{})
	// SIGPIPE is only to be an error of the write: calls must still be ended,
	// and results are still wanted.
	signal.Notify(signals, slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE}, stays)...)
	go func() {
		defer close(done)
		n := 0
		for s := range signals {
			if s != syscall.SIGPIPE {
				n++
				end(n)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}
