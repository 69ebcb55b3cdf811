package call

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/internal/publish"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// What SIGKILL does not end is answered for in time, and keeps its slot.
func TestOwnerOfWhatDoesNotDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := &played{work: untilEnded, deaf: true, undying: true}
		c := owned(tool, nil)
		r := c.Result()
		if r.Status != api.StatusUnkillable || r.Kill.Survivors != 1 || !slices.Contains(tool.did, "boost") {
			t.Errorf("%s, %d survivors, the host did %q", r.Status, r.Kill.Survivors, tool.did)
		}
		if took := c.marks.done.Sub(c.marks.admitted); took > budget.AnswerWithin(time.Minute, c.p.Grace) {
			t.Errorf("answered after %s", took)
		}
		synctest.Wait()
		if closed(c.gone) || c.Stuck.Load() != 1 {
			t.Errorf("gone: %t, stuck: %d", closed(c.gone), c.Stuck.Load())
		}
		tool.die(syscall.SIGKILL)
		<-c.Gone()
		synctest.Wait()
		if stuck := c.Stuck.Load(); stuck != 0 {
			t.Errorf("%d are stuck", stuck)
		}
	})
}

// An abort of a call that has ended does not cut off what is still read of its output.
func TestAnAbortKeepsTheLastOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := &played{}
		tool.lastOutput = func() {
			time.Sleep(settleTime / 4)
			tool.call.Abort(api.ReasonUser)
			time.Sleep(settleTime / 4)
			_ = tool.call.Output(process.Stdout, []byte("late"))
		}
		if r := owned(tool, nil).Result(); r.Status != api.StatusOK || r.Output.Stdout.Head != "late" {
			t.Errorf("%s, and it wrote %q", r.Status, r.Output.Stdout.Head)
		}
	})
}

// A start that does not end when it should has no process that survives, and
// keeps its slot.
func TestOwnerOfAStartThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := owned(&played{startHangs: true}, nil)
		r := c.Result()
		if r.Status != api.StatusStartFailed || r.Reason != api.ReasonSlow || r.Kill.Survivors != 0 || len(r.Warnings) != 1 {
			t.Errorf("%s (%s), %d survivors, warnings %q", r.Status, r.Reason, r.Kill.Survivors, r.Warnings)
		}
		synctest.Wait()
		if closed(c.gone) {
			t.Error("the slot was given back")
		}
		<-c.Gone()
	})
}

// Long calls have a beat, and the timeout its event.
func TestOwnerPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan api.Event, 100)
		c := owned(&played{work: untilEnded}, func(c *owner) { c.p.Request.Events = events; c.events = publish.New(events, c.ID(), "tool", 0) })
		c.Result()
		close(events)
		kinds := map[api.EventKind]int{}
		for e := range events {
			kinds[e.Kind]++
		}
		beats := int(time.Minute/progressEvery) - 1 // the last one comes with the deadline
		if kinds[api.EventProgress] < beats || kinds[api.EventTimeout] != 1 || kinds[api.EventQueued] != 1 || kinds[api.EventStarted] != 1 || kinds[api.EventFailed] != 1 {
			t.Errorf("events %v", kinds)
		}
	})
}

// What comes before a slot: a refusal, or an abort, of which the tool never hears.
func TestOwnerInTheQueue(t *testing.T) {
	for name, test := range map[string]struct {
		enter  func(context.Context) (func(), time.Duration, error)
		status api.Status
	}{
		"overloaded": {func(context.Context) (func(), time.Duration, error) {
			return nil, 0, outcome.Refuse(api.StatusOverloaded, api.ReasonData, errors.New("later"))
		}, api.StatusOverloaded},
		"aborted": {func(ctx context.Context) (func(), time.Duration, error) { <-ctx.Done(); return nil, 0, ctx.Err() }, api.StatusCancelled},
		"aborted, and admitted all the same": {func(ctx context.Context) (func(), time.Duration, error) {
			<-ctx.Done()
			return func() {}, 0, nil
		}, api.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := owned(&played{}, func(c *owner) { c.Enter = test.enter })
				time.Sleep(time.Second)
				c.Abort(api.ReasonUser)
				r := c.Result()
				<-c.Gone()
				if r.Status != test.status || r.Retry.SideEffects != "none" || r.Timing.ElapsedMs != 0 {
					t.Errorf("%s, side effects %s, %d ms", r.Status, r.Retry.SideEffects, r.Timing.ElapsedMs)
				}
				if left := c.Tasks.Wait(time.Minute); len(left) > 0 {
					t.Errorf("goroutines left: %q", left)
				}
			})
		})
	}
}

// A call that has waited runs for no longer than what is left by then, and says so.
func TestOwnerHasLessAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := owned(&played{work: untilEnded}, func(c *owner) {
			c.Enter = func(context.Context) (func(), time.Duration, error) { return func() {}, 10 * time.Second, nil }
		})
		r := c.Result()
		<-c.Gone()
		if r.Status != api.StatusTimeout || *r.Timing.TimeoutMs != 10_000 || r.Timing.Source != "client" || len(r.Warnings) != 1 || !strings.Contains(r.Message, "after 10s, its limit") {
			t.Errorf("%s, %+v, %q, %s", r.Status, r.Timing, r.Warnings, r.Message)
		}
	})
}

// A host that was stopped beyond a call's time reads what the call has written all the same.
func TestALateHostReadsTheLastOutput(t *testing.T) {
	for name, test := range map[string]struct {
		tool    *played
		stopped time.Duration // for 30s
		through bool
	}{
		"of a call that ended by itself":   {tool: &played{work: fiftySeconds}, stopped: 40 * time.Second},
		"of one that passes its output on": {tool: &played{work: fiftySeconds}, stopped: 40 * time.Second, through: true},
		"of one in its grace":              {tool: &played{work: untilEnded, deaf: true}, stopped: 61 * time.Second},
		"of one in its grace, passed on":   {tool: &played{work: untilEnded, deaf: true}, stopped: 61 * time.Second, through: true},
		"of one that dies in the meantime": {tool: &played{work: untilEnded, deaf: true, killTime: 20 * time.Millisecond}, stopped: 62*time.Second + 10*time.Millisecond},
		"of one that ends when told":       {tool: &played{work: untilEnded}, stopped: 59 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := test.tool
				tool.lastOutput = func() {
					time.Sleep(settleTime / 5)
					_ = tool.call.Output(process.Stderr, []byte("late"))
				}
				c := owned(tool, func(c *owner) {
					if test.through {
						c.p.Request.Command = &spec.Command{Argv: []string{"true"}, Stdout: io.Discard}
					}
				})
				time.Sleep(test.stopped)
				c.send(heldUp(30 * time.Second))
				r := c.Result()
				<-c.Gone()
				if got := r.Output.Stderr.Head; got != "late" || r.Output.Undelivered {
					t.Errorf("%s, and it wrote %q, undelivered: %t", r.Status, got, r.Output.Undelivered)
				}
			})
		})
	}
}

func fiftySeconds(ctx context.Context, p *played) error {
	err := works(ctx, 50*time.Second)
	p.result(nil)
	return err
}
