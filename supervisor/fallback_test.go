package supervisor

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox"
)

// Where there is no PID namespace to be had, the cgroup alone holds the tree.
func TestWithoutPIDNamespace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.features = s.features.Without(sandbox.FeaturePIDNS)
	events := make(chan api.Event, 100)
	c := s.Start(t.Context(), Request{
		Tool: Tool{Path: self, Name: "children"}, Arguments: json.RawMessage(`{"n":20,"text":"orphan"}`),
		Sandbox: &sandbox.Policy{Tier: sandbox.TierNone},
		Limits:  Limits{Pids: 2000, MemoryBytes: 1 << 30}, Grace: 1, Events: events, Timeout: wait.Bound, // the VM is slow
	})
	for children := false; !children; {
		select {
		case e := <-events:
			children = e.Kind == api.EventProgress && e.Message != ""
		case <-c.Done():
			t.Fatal(c.Result().Message)
		}
	}
	c.Abort(api.ReasonUser)
	r := c.Result()
	if r.Status != api.StatusCancelled || r.Kill.Survivors != 0 || r.Kill.Reaped < 20 {
		t.Errorf("status %s, kill %+v", r.Status, r.Kill)
	}
	if slices.Contains(r.Sandbox.Enforced, "pidns") || !slices.Contains(r.Sandbox.Enforced, "subreaper") {
		t.Errorf("receipt %+v", r.Sandbox)
	}
}
