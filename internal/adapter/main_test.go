package adapter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/adapter"
	"github.com/toolhost/toolhost/supervisor"
)

// The test binary plays the adapter.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "adapter" {
		adapter.ServeCommand(os.Args[4:])
		return
	}
	goleak.VerifyTestMain(m)
}

// newHost makes a supervisor whose adapter is this binary.
func newHost(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := supervisor.New(t.Context(), supervisor.Config{Adapter: self, RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return host
}

func wantStatus(t *testing.T, r *api.Result, want api.Status) {
	t.Helper()
	if r.Status != want {
		t.Fatalf("status %s (reason %s), want %s\nmessage: %s\ntool error: %+v\nstderr: %s", r.Status, r.Reason, want, r.Message, r.ToolError, r.Output.Stderr.Head)
	}
}
