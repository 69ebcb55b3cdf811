package call

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// A tool that ends by a limit of its network before the host hears of that has passed it
// all the same, unless it has ended well; its processes serve no other call.
func TestALimitThatTheToolEndsBy(t *testing.T) {
	for what, test := range map[string]struct {
		err    *pluginv1.ToolError
		kept   bool
		status api.Status
	}{
		"an error":                    {&pluginv1.ToolError{Message: "reset"}, false, api.StatusNetworkLimit},
		"a success":                   {nil, false, api.StatusOK},
		"an error of a kept process":  {&pluginv1.ToolError{Message: "reset"}, true, api.StatusNetworkLimit},
		"a success of a kept process": {nil, true, api.StatusOK},
	} {
		synctest.Test(t, func(t *testing.T) {
			tool := &played{livesOn: test.kept, work: func(_ context.Context, tool *played) error { tool.result(test.err); return nil }}
			c := owned(tool, func(o *owner) {
				if test.kept {
					o.p.Request.Keep = &spec.Keep{}
				}
				o.Reached = func(*Call, time.Time, bool, bool) *api.Network {
					return &api.Network{Mode: "grants", Limit: "sent"}
				}
			})
			r := c.Result()
			<-c.Gone()
			if r.Status != test.status || r.Kill.Cause != "" || r.Network.Limit != "sent" {
				t.Errorf("%s: %s, cause %q, %+v", what, r.Status, r.Kill.Cause, r.Network)
			}
			if test.err != nil && (r.Reason != "sent" || r.ToolError == nil || !strings.Contains(r.Message, "had passed the limit sent")) {
				t.Errorf("%s: %s, %+v, %s", what, r.Reason, r.ToolError, r.Message)
			}
			if released := slices.Contains(tool.did, "release"); released != test.kept || tool.livesOn {
				t.Errorf("%s: the host did %q, and lives on: %t", what, tool.did, tool.livesOn)
			}
		})
	}
}
