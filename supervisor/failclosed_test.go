package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
)

// For each feature: on a host that lacks it, and a policy that needs it, nothing
// runs, and the error names it with a remedy.
func TestFailsClosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Config{RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	offered := s.features
	for _, finding := range offered.Findings() {
		policy := Policy{}
		if finding.Optional() {
			policy.Require = []string{finding.Feature}
		}
		request := Request{Tool: Tool{Path: self, Name: "echo"}, Sandbox: &policy}
		if finding.State == sandbox.Yes {
			if r := s.Call(t.Context(), request); !r.OK() {
				t.Errorf("%s: %s where it is there", finding.Feature, r.Message)
			}
		}
		s.features = offered.Without(finding.Feature)
		r := s.Call(t.Context(), request)
		if r.Status != api.StatusStartFailed || r.Reason != "sandbox" || r.Retry.SideEffects != "none" || r.Usage.MemoryPeakBytes != 0 {
			t.Errorf("%s: status %s, reason %s, usage %+v", finding.Feature, r.Status, r.Reason, r.Usage)
		}
		if r.ToolError == nil || !strings.Contains(r.ToolError.Message, finding.Feature) || !strings.Contains(r.ToolError.Message, "give it back") {
			t.Errorf("%s: error %+v names neither feature nor remedy", finding.Feature, r.ToolError)
		}
		s.features = offered
	}
}
