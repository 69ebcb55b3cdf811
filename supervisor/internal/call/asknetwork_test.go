package call

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// What comes of a question about a name is settled before another call can have the
// processes, and keeps the call's own result waiting in no case.
func TestAnswersAboutNamesComeBeforeTheNextCall(t *testing.T) {
	late := func(ctx context.Context, _ spec.Question) spec.Answer {
		<-ctx.Done() // a human has said yes in the moment in which the call ended
		return spec.Answer{Value: []byte("true")}
	}
	for what, ask := range map[string]func(context.Context, spec.Question) spec.Answer{"nobody is there": nil, "a late yes": late} {
		synctest.Test(t, func(t *testing.T) {
			tool := &played{livesOn: true, work: func(_ context.Context, tool *played) error {
				tool.call.AskNetwork(context.Background(), "b.test", 443, func(spec.Answer, string) {
					time.Sleep(time.Minute)
					tool.note("settled")
				})
				tool.result(nil)
				return nil
			}}
			c := owned(tool, func(o *owner) { o.p.Request.Ask, o.p.Request.Keep = ask, &spec.Keep{} })
			r := c.Result()
			<-c.Gone()
			c.Tasks.Wait(time.Minute)
			if r.Status != api.StatusOK || r.Timing.ElapsedMs != 0 {
				t.Errorf("%s: %s after %d ms", what, r.Status, r.Timing.ElapsedMs)
			}
			if tail := tool.did[max(0, len(tool.did)-2):]; !slices.Equal(tail, []string{"settled", "release"}) {
				t.Errorf("%s: the host did %q", what, tool.did)
			}
		})
	}
}
