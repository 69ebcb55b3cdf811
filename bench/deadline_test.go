package bench

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// BenchmarkDeadline: how late SIGTERM is after a call's deadline, how long from
// SIGKILL until nothing is left, and from then, as the supervisor saw it, until
// the caller has its answer; of a tool that sleeps, and of one that
// burns all of a small CPU quota on every processor, alone and beside processes
// of others that want all of each processor.
func BenchmarkDeadline(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		checkLate(b, benchDeadline(b, "TOOLHOST_BENCH_SLEEP=1", 53*time.Millisecond, supervisor.Limits{}))
	})
	quota := supervisor.Limits{CPUPercent: 20}
	b.Run("quota", func(b *testing.B) {
		checkLate(b, benchDeadline(b, "TOOLHOST_BENCH_BURN=1", 400*time.Millisecond, quota))
	})
	b.Run("quota, all processors burning", func(b *testing.B) {
		burnAll(b)
		// A tool's start alone takes a quarter of a second there. How late the
		// latest is depends on who else is about, so that is not checked.
		benchDeadline(b, "TOOLHOST_BENCH_BURN=1", time.Second, quota)
	})
}

// checkLate is for a machine that does nothing else.
func checkLate(b *testing.B, late []time.Duration) {
	atMost(b, len(late), "p50 of SIGTERM after the deadline", percentile(late, 50), termLateP50)
	atMost(b, len(late), "p99 of SIGTERM after the deadline", percentile(late, 99), termLateP99)
}

// burnAll keeps every processor busy until the benchmark is over.
func burnAll(b *testing.B) {
	for range runtime.NumCPU() {
		cmd := exec.Command(self)
		cmd.Env = []string{burnerVar + "=1"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// startLimit is more than any tool takes to start.
const startLimit = 10 * time.Second

// benchDeadline leaves out calls whose tool did not run yet at the deadline: of
// them there may be nothing to end.
func benchDeadline(b *testing.B, env string, timeout time.Duration, limits supervisor.Limits) (late []time.Duration) {
	host := newHost(b)
	sleeper := supervisor.Request{
		Tool: supervisor.Tool{Path: self}, Arguments: arguments,
		Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: timeout}},
		Env:      []string{env}, Grace: time.Millisecond, Limits: limits,
	}
	// A slow machine's deadlines are later.
	for host.Call(context.Background(), sleeper).Marks.Ready.IsZero() && sleeper.Timeouts[0].Timeout < startLimit {
		sleeper.Timeouts[0].Timeout *= 2
	}
	var kill, told []time.Duration
	for b.Loop() {
		r := host.Call(context.Background(), sleeper)
		answered := time.Now()
		if r.Status != api.StatusTimeout {
			b.Fatal(r.Status, r.Message)
		}
		if r.Marks.Ready.IsZero() {
			continue
		}
		late = append(late, time.Duration(r.Kill.TermLatencyUs)*time.Microsecond)
		kill = append(kill, time.Duration(r.Kill.LatencyUs)*time.Microsecond)
		told = append(told, answered.Sub(r.Marks.Empty))
	}
	if len(late) == 0 {
		b.Fatalf("no tool ran within its %v: use an idle machine", sleeper.Timeouts[0].Timeout)
	}
	reportTail(b, "term-late", late)
	reportTail(b, "kill", kill)
	reportTail(b, "gone-to-answer", told)
	atMost(b, len(told), "p99 from the last process's end to the answer", percentile(told, 99), goneToAnswer)
	return late
}

func reportTail(b *testing.B, what string, took []time.Duration) {
	b.ReportMetric(micros(median(took)), what+"-p50-µs")
	b.ReportMetric(micros(percentile(took, 99)), what+"-p99-µs")
}
