package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// A signal to stop is heard behind any number of reloads that nobody has taken up yet.
func TestReloadsDisplaceNoStop(t *testing.T) {
	stops, reloads := daemonSignals()
	t.Cleanup(func() { signal.Reset(os.Interrupt, syscall.SIGHUP, syscall.SIGTERM) })
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, syscall.SIGHUP, syscall.SIGTERM)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		<-seen // two that wait would be one
	}
	signal.Stop(seen) // and all have been delivered
	if len(stops) != 1 || len(reloads) != 1 {
		t.Errorf("%d signals to stop and %d to reload wait, want one each", len(stops), len(reloads))
	}
}
