package bench

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// treeProcesses is how many a tool forks that is asked for a tree.
const treeProcesses = 50

// forkTree forks processes that do nothing until they are killed, each in a session
// of its own. They don't exec: under a small CPU quota that would take minutes.
func forkTree() {
	for range treeProcesses {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			panic(errno)
		}
		if pid == 0 {
			rawPause()
		}
	}
}

// rawPause is all that the child of a fork without exec may do: it has one
// thread of a runtime that thinks it has more.
//
//go:nosplit
func rawPause() {
	syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// BenchmarkKillUnderQuota: how long a tree takes from SIGKILL until nothing of
// it is left, with a CPU quota of 2% and without one.
func BenchmarkKillUnderQuota(b *testing.B) {
	host := newHost(b)
	var with, without []time.Duration
	for b.Loop() {
		with = append(with, killTree(b, host, 2))
		without = append(without, killTree(b, host, supervisor.Unlimited))
	}
	reportTail(b, "quota", with)
	reportTail(b, "no-quota", without)
	b.ReportMetric(0, "ns/op")
}

func killTree(b *testing.B, host *supervisor.Supervisor, cpuPercent int64) time.Duration {
	events := make(chan api.Event, 16)
	call := host.Start(context.Background(), supervisor.Request{
		Tool: supervisor.Tool{Path: self}, Arguments: arguments, Env: []string{"TOOLHOST_BENCH_TREE=1"}, Events: events,
		Grace: budget.NoGrace, Limits: supervisor.Limits{CPUPercent: cpuPercent, Pids: 4 * treeProcesses},
	})
	for begun := false; !begun; {
		select {
		case e := <-events:
			begun = e.Kind == api.EventOutput
		case <-call.Done():
			b.Fatal(call.Result().Message)
		}
	}
	call.Abort(api.ReasonUser)
	r := call.Result()
	if r.Kill.Stage != "kill" || r.Kill.Reaped <= treeProcesses || r.Kill.Survivors > 0 {
		b.Fatalf("%s: %+v", r.Status, r.Kill)
	}
	settle(host)
	return time.Duration(r.Kill.LatencyUs) * time.Microsecond
}
