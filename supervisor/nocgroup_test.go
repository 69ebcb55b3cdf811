package supervisor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// Without cgroups a call is held by its PID namespace, and says so.
func TestNoCgroup(t *testing.T) {
	host := newHost(t, supervisor.Config{NoCgroup: true, Totals: cgroup.Limits{Pids: 100}})
	if found := host.Host(); found.Cgroup != "none" || host.Controller("memory") {
		t.Errorf("host %+v", found)
	}
	r := call(t, host, request("echo", `{"text":"a"}`))
	wantStatus(t, r, api.StatusOK)
	if r.Sandbox.Cgroup != "none" || !slices.Contains(r.Sandbox.Enforced, "pidns") || !slices.Contains(r.Sandbox.Enforced, "timer") {
		t.Errorf("receipt %+v", r.Sandbox)
	}
	lost := func(d api.Degradation) bool { return d.Feature == "cgroup" && d.Reason != "" && d.Remedy != "" }
	if !slices.ContainsFunc(r.Sandbox.Degraded, lost) {
		t.Errorf("the receipt does not say what is lost: %+v", r.Sandbox.Degraded)
	}
	if l := r.Limits; l.CPUPercent != 0 || l.MemoryBytes == 0 || l.Pids == 0 {
		t.Errorf("limits %+v", l)
	}
}

func TestNoCgroupKillsTheTree(t *testing.T) {
	host := newHost(t, supervisor.Config{NoCgroup: true})
	for _, role := range []string{"deaf", "orphan", "stopped", "treadmill"} {
		t.Run(role, func(t *testing.T) {
			r := killed(t, host, role, 6, nil)
			if !slices.Equal(r.Kill.Signals, []string{"SIGTERM", "SIGKILL"}) {
				t.Errorf("signals %v", r.Kill.Signals)
			}
		})
	}
}

// What would hold nothing, or end nothing, is refused.
func TestNoCgroupLimits(t *testing.T) {
	host := newHost(t, supervisor.Config{NoCgroup: true})
	bare := request("echo", `{"text":"a"}`)
	bare.Sandbox = &supervisor.Policy{Tier: sandbox.TierNone}
	timed := request("echo", `{"text":"a"}`)
	timed.Limits.CPUTime = time.Second
	shared := request("echo", `{"text":"a"}`)
	shared.Share = supervisor.Share{Key: "ci", MemoryBytes: 64 << 20}
	for _, one := range []struct {
		want api.Reason
		r    supervisor.Request
	}{{api.ReasonPolicy, bare}, {api.ReasonLimits, timed}, {api.ReasonLimits, shared}} {
		result := call(t, host, one.r)
		wantStatus(t, result, api.StatusStartFailed)
		if result.Reason != one.want {
			t.Errorf("reason %s, want %s: %s", result.Reason, one.want, result.Message)
		}
	}
}
