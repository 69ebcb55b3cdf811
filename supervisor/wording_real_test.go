package supervisor_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A tool that our SIGTERM ends before its handshake is a tool all the same.
func TestATermBeforeTheHandshakeIsNotTheToolsFault(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := hostileRequest("late")
	r.Timeouts, r.Grace = within(2*time.Second), 20*time.Second
	result := call(t, host, r)
	wantStatus(t, result, api.StatusTimeout)
	if said := result.Message + result.ToolError.Message; strings.Contains(said, "not a toolhost tool") || !strings.Contains(said, "it has not answered within 2") {
		t.Errorf("%q", said)
	}
}

// What the host cannot do is not for the tool to correct.
func TestAFailureOfTheHostSparesTheTool(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("echo", `{}`)
	r.Lock.File = filepath.Join(t.TempDir(), "nowhere", "lock")
	result := call(t, host, r)
	wantStatus(t, result, api.StatusStartFailed)
	if result.Reason != "host" || !strings.Contains(result.Message, "leave the tool as it is") || strings.Contains(result.Message, "set-up") {
		t.Errorf("%s: %q", result.Reason, result.Message)
	}
}
