package supervisor_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor"
)

// Messages of 4 MiB whose parts are empty take a hundred times as much once they
// are decoded.
func TestEmptyPartsTakeNoMemory(t *testing.T) {
	profiles := patient()
	profiles[budget.MessageRoute] = within(time.Minute) // some are decoded while a tool is described
	host := newHost(t, supervisor.Config{Profiles: profiles})
	for _, how := range []string{"describe-empty-1", "describe-empty-2", "describe-empty-3", "describe-empty-4", "result-empty-1", "result-empty-3"} {
		t.Run(how, func(t *testing.T) {
			before := allocated()
			r := call(t, host, hostileRequest(how))
			wantStatus(t, r, api.StatusProtocolError)
			if !strings.Contains(r.ToolError.Message, "once it is decoded") {
				t.Errorf("error %q", r.ToolError.Message)
			}
			if took := allocated() - before; took > 64<<20 {
				t.Errorf("%d MiB were allocated for 4 MiB of a tool's", took>>20)
			}
		})
	}
	// What the message's type does not have is thrown away.
	before := allocated()
	wantStatus(t, call(t, host, hostileRequest("describe-empty-15")), api.StatusOK)
	if took := allocated() - before; took > 64<<20 {
		t.Errorf("%d MiB were allocated for 4 MiB of unknown fields", took>>20)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
