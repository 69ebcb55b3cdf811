package daemon

import (
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A kept process serves one identity: another's calls do not end with its calls, and wait
// neither for these nor for data that it has while it is idle.
func TestAKeptProcessIsAnIdentitys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "  kept: {mcp: [x], keep: true, readOnly: true, class: all}\n  files: {mcp: [x], keep: true, data: true, class: all}\n"+
		"access: {one: {quota: {running: 4}}}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	one, other := bearerOf(t, d, "one"), bearerOf(t, d, "other")
	file := filepath.Join(w.dir, "over")
	runs := other.launch(other.begin(), "kept__work", workArgs{For: file})
	turn := one.begin()
	hangs := one.launch(turn, "kept__work", workArgs{For: file})
	if err := one.client.Abort(wait.Context(t), turn); err != nil {
		t.Fatal(err)
	}
	if o := w.outcome(hangs); o.result == nil || o.result.Status != api.StatusCancelled {
		t.Errorf("what was aborted: %+v", o)
	}
	w.letGo(file)
	if o := w.outcome(runs); o.err != nil || !o.result.OK() || o.result.Instance != api.InstanceFresh {
		t.Errorf("the other's call: %+v", o)
	}
	for range 2 {
		for _, by := range []*world{one.world, other.world, w} {
			if r := by.mustRun(by.begin(), "files__work", workArgs{}); r.Instance != api.InstanceFresh {
				t.Errorf("the process is %s", r.Instance)
			}
		}
	}
	if r := w.mustRun(w.begin(), "files__work", workArgs{}); r.Instance != api.InstanceReused {
		t.Errorf("the process of one's own is %s", r.Instance)
	}
}
