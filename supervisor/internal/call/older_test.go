package call

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
)

// A process that was there before its call is the call's while its network is served: it is
// known, ends with the call at once, and has done nothing for it.
func TestAToolThatIsOlderThanItsCall(t *testing.T) {
	type starter = func(ctx context.Context, tool *played, c *Call)
	hangs := func(ctx context.Context, _ *played, c *Call) {
		<-ctx.Done()
		time.Sleep(time.Millisecond) // as long as it takes to give up
		c.StartFailed(ctx.Err())
	}
	abort := func(o *owner, _ *played) { o.Abort(api.ReasonUser) }
	for name, test := range map[string]struct {
		start   starter
		then    func(*owner, *played)
		status  api.Status
		effects string
		did     []string
		says    string
	}{
		"aborted": {start: hangs, then: abort, status: api.StatusCancelled, effects: "none", did: []string{"SIGKILL"}},
		"aborted as it is served": {
			start: func(ctx context.Context, tool *played, c *Call) { c.Launching(); hangs(ctx, tool, c) },
			then:  abort, status: api.StatusCancelled, effects: "possible", did: []string{"SIGKILL"},
		},
		"dies": {
			start: hangs, then: func(_ *owner, tool *played) { tool.die(2 << 8) },
			status: api.StatusStartFailed, effects: "none", says: errEndedBefore.Error(),
		},
		"not served": {
			start:  func(_ context.Context, _ *played, c *Call) { c.StartFailed(errors.New("no relay")) },
			status: api.StatusStartFailed, effects: "none", says: "no relay",
		},
		"served": {
			start:  func(_ context.Context, tool *played, c *Call) { c.Connected(tool) },
			status: api.StatusOK, effects: "possible",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := &played{}
				c := owned(tool, func(o *owner) {
					tool.come(time.Now().Add(-time.Hour))
					o.Take = func(*Call) (Tree, Peer) { return tool, nil }
					o.Start = func(ctx context.Context, c *Call) { test.start(ctx, tool, c) }
				})
				synctest.Wait()
				if test.then != nil {
					if _, known := c.Current(); !known {
						t.Error("nothing is known of its process")
					}
					test.then(c, tool)
				}
				r := c.Result()
				<-c.Gone()
				if r.Status != test.status || r.Retry.SideEffects != test.effects || !strings.Contains(r.Message, test.says) || len(r.Warnings) > 0 {
					t.Errorf("%s, side effects %s, warnings %q: %s", r.Status, r.Retry.SideEffects, r.Warnings, r.Message)
				}
				if took := c.marks.empty.Sub(c.marks.admitted); took > time.Millisecond {
					t.Errorf("it ended after %s", took)
				}
				if test.did != nil && !slices.Equal(tool.did, test.did) {
					t.Errorf("the host did %q, want %q", tool.did, test.did)
				}
				if left := c.Tasks.Wait(time.Minute); len(left) > 0 {
					t.Errorf("goroutines left: %q", left)
				}
			})
		})
	}
}
