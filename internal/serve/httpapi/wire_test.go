package httpapi

import (
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/turn"
)

// processes are a call's; nil is a call that has none yet.
type processes struct {
	turn.Running
	now *cgroup.Current
}

func (p processes) Gone() <-chan struct{} { return nil }

func (p processes) Current() (cgroup.Current, bool) {
	if p.now == nil {
		return cgroup.Current{}, false
	}
	return *p.now, true
}

// A call that waits has no processes and is queued; one with processes runs, though its
// tool has not begun.
func TestACallWithProcessesIsRunning(t *testing.T) {
	info := turn.Info{
		Turn:    api.Turn{CurrentTools: []api.CurrentTool{{CallID: "waits", State: "queued"}, {CallID: "starts", State: "queued"}, {CallID: "asks", State: "asking"}}},
		Running: []turn.Running{processes{}, processes{now: &cgroup.Current{Pids: 2}}, nil},
	}
	shown := wireTurn(info)
	for i, want := range []string{"queued", "running", "asking"} {
		got := shown.CurrentTools[i]
		if got.State != want || (got.Usage != nil) != (want == "running") {
			t.Errorf("%s: %s, usage %+v", got.CallID, got.State, got.Usage)
		}
	}
}
