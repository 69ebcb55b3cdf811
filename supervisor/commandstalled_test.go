package supervisor_test

import (
	"os"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/supervisor"
)

// Whoever takes no output holds up neither the end of the call nor its answer.
func TestAReaderThatTakesNothing(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"stdout": "exec yes", "stderr": "exec yes >&2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needShell(t)
			host := newHost(t, supervisor.Config{})
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			defer r.Close() // and then the write that waits ends
			run := &supervisor.Command{Argv: []string{"sh", "-c", command}}
			if name == "stdout" {
				run.Stdout = w
			} else {
				run.Stderr = w
			}
			call := host.Start(t.Context(), supervisor.Request{
				Command: run, Grace: budget.NoGrace, Sandbox: &supervisor.Policy{Tier: "none"},
				Timeouts: []budget.Ask{{Layer: budget.LayerCall, Timeout: 6 * time.Second}},
			})
			select {
			case <-call.Done():
			case <-wait.Context(t).Done():
				t.Fatal("no answer")
			}
			result := call.Result()
			wantStatus(t, result, api.StatusTimeout)
			if !result.Output.Undelivered || result.Kill.Survivors != 0 {
				t.Errorf("undelivered %t, kill %+v", result.Output.Undelivered, result.Kill)
			}
		})
	}
}
