package bench

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// BenchmarkDeadline: how late SIGTERM is after a call's deadline, and how long
// from SIGKILL until nothing is left; of a tool that sleeps, and of one that
// burns all of a small CPU quota on every processor, alone and beside processes
// of others that want all of each processor.
func BenchmarkDeadline(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		benchDeadline(b, "TOOLHOST_BENCH_SLEEP=1", 53*time.Millisecond, supervisor.Limits{})
	})
	quota := func(b *testing.B) {
		benchDeadline(b, "TOOLHOST_BENCH_BURN=1", 400*time.Millisecond, supervisor.Limits{CPUPercent: 20})
	}
	b.Run("quota", quota)
	b.Run("quota, all processors burning", func(b *testing.B) {
		burnAll(b)
		quota(b)
	})
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

func benchDeadline(b *testing.B, env string, timeout time.Duration, limits supervisor.Limits) {
	host := newHost(b)
	sleeper := supervisor.Request{
		Tool: supervisor.Tool{Path: self}, Arguments: arguments,
		Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Rank: budget.RankFlag, Timeout: timeout}},
		Env:      []string{env}, Grace: time.Millisecond, Limits: limits,
	}
	var late, kill []time.Duration
	for b.Loop() {
		r := host.Call(context.Background(), sleeper)
		if r.Status != supervisor.StatusTimeout {
			b.Fatal(r.Status, r.Message)
		}
		late = append(late, time.Duration(r.Kill.TermLatencyUs)*time.Microsecond)
		kill = append(kill, time.Duration(r.Kill.LatencyUs)*time.Microsecond)
	}
	b.ReportMetric(micros(median(late)), "term-late-p50-µs")
	b.ReportMetric(micros(percentile(late, 99)), "term-late-p99-µs")
	b.ReportMetric(micros(median(kill)), "kill-p50-µs")
	b.ReportMetric(micros(percentile(kill, 99)), "kill-p99-µs")
}
