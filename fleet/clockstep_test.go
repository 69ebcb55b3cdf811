//go:build clockstep

package fleet_test

import (
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// A party of the soak has its wall clock set by up to a day, forth or back, when it gets
// SIGUSR1 (internal/testenv/clockstep). Nobody may note it: what is about time goes by clocks
// that cannot be set.
func init() {
	signal.Ignore(syscall.SIGUSR1) // parties that are about to begin are told, too
	stepClock = func(p *os.Process) { _ = p.Signal(syscall.SIGUSR1) }
	if os.Getenv(workerVariable) == "" && os.Getenv(callerVariable) == "" {
		return
	}
	var step atomic.Int64
	time.WallStep = step.Load
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	const day = 24 * 60 * 60
	go func() {
		for range told {
			step.Store(rand.Int64N(2*day) - day)
		}
	}()
}
