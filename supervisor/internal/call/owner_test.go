package call

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// A call's whole way, by a clock of its own: every duration is exact.
func TestOwner(t *testing.T) {
	toolError := &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: "no luck"}
	answered := func(err *pluginv1.ToolError) func(context.Context, *played) error {
		return func(ctx context.Context, tool *played) error {
			<-tool.told
			tool.result(err)
			return nil
		}
	}
	for name, test := range map[string]struct {
		tool   *played
		change func(*owner)
		// then is what happens to the call from outside.
		then    func(*owner)
		status  api.Status
		reason  api.Reason
		stage   string
		did     []string // by the host; nil is not checked
		elapsed time.Duration
		check   func(*testing.T, *played, *api.Result)
	}{
		"ok": {status: api.StatusOK, stage: "none"},
		"slow to start": {
			tool: &played{startTime: 3 * time.Second}, status: api.StatusOK, stage: "none", elapsed: 3 * time.Second,
		},
		"deadline, ends at SIGTERM": {
			tool: &played{work: untilEnded}, status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "term", elapsed: time.Minute,
		},
		"deadline, deaf": {
			tool: &played{work: untilEnded, deaf: true}, status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "kill",
			did: []string{"SIGTERM", "SIGKILL"}, elapsed: time.Minute + 2*time.Second,
		},
		"no grace": {
			tool: &played{work: untilEnded, deaf: true}, change: func(c *owner) { c.p.Grace = 0 }, status: api.StatusTimeout, reason: api.ReasonDeadline,
			stage: "kill", did: []string{"SIGKILL"}, elapsed: time.Minute,
		},
		"what was said before the deadline is kept": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				tool.say("half of it")
				return works(ctx, time.Hour)
			}},
			status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "term", elapsed: time.Minute,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if r.Text() != "half of it" || !r.Partial {
					t.Errorf("text %q, partial %t", r.Text(), r.Partial)
				}
			},
		},
		"result during grace": {
			tool: &played{work: answered(nil), deaf: true}, status: api.StatusOK, elapsed: time.Minute, stage: "term",
			check: func(t *testing.T, _ *played, r *api.Result) {
				if !r.Overran || r.Kill.Cause != "deadline" {
					t.Errorf("overran %t, cause %q", r.Overran, r.Kill.Cause)
				}
			},
		},
		"error during grace": {
			tool: &played{work: answered(toolError), deaf: true}, status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "term", elapsed: time.Minute,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if r.ToolError == nil || r.ToolError.Message != "no luck" {
					t.Errorf("tool error %+v", r.ToolError)
				}
			},
		},
		"abort": {
			tool: &played{work: untilEnded, deaf: true}, then: func(c *owner) { time.Sleep(5 * time.Second); c.Abort(api.ReasonUser) },
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "kill", elapsed: 7 * time.Second,
		},
		"second abort": {
			tool:   &played{work: untilEnded, deaf: true},
			then:   func(c *owner) { time.Sleep(5 * time.Second); c.Abort(api.ReasonUser); c.Abort(api.ReasonUser) },
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "kill", elapsed: 5 * time.Second,
		},
		"silence": {
			tool: &played{work: untilEnded}, change: func(c *owner) { c.p.Request.Stream = budget.Stream{Initial: 4 * time.Second} },
			status: api.StatusTimeout, reason: api.ReasonIdle, stage: "term", elapsed: 4 * time.Second,
		},
		"silence that is broken": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				for range 10 {
					if err := works(ctx, 3*time.Second); err != nil {
						return err
					}
					tool.handle(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Heartbeat{}}, time.Now())
				}
				tool.result(nil)
				return nil
			}},
			change: func(c *owner) { c.p.Request.Stream = budget.Stream{Gap: 4 * time.Second} },
			status: api.StatusOK, stage: "none", elapsed: 30 * time.Second,
		},
		"a question stops the clock": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				if err := works(ctx, 50*time.Second); err != nil {
					return err
				}
				tool.ask("q")
				<-tool.answers
				if err := works(ctx, 9*time.Second); err != nil {
					return err
				}
				tool.result(nil)
				return nil
			}},
			change: func(c *owner) {
				c.p.Request.Ask = func(context.Context, spec.Question) spec.Answer {
					time.Sleep(time.Hour)
					return spec.Answer{Value: json.RawMessage("true")}
				}
			},
			status: api.StatusOK, stage: "none", elapsed: time.Hour + 59*time.Second,
			check: func(t *testing.T, tool *played, r *api.Result) {
				if r.Timing.HumanWaitMs != time.Hour.Milliseconds() {
					t.Errorf("waited for a human for %d ms", r.Timing.HumanWaitMs)
				}
				left := budget.AnswerWithin(10*time.Second, 2*time.Second)
				if want := []time.Duration{left + budget.MaxHumanWait, left}; !slices.Equal(tool.timers, want) {
					t.Errorf("the launcher's timer was set to %s, want %s", tool.timers, want)
				}
			},
		},
		"the clock goes on after the answer": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				tool.ask("q")
				<-tool.answers
				return works(ctx, time.Hour)
			}},
			change: func(c *owner) {
				c.p.Request.Ask = func(context.Context, spec.Question) spec.Answer {
					time.Sleep(time.Hour)
					return spec.Answer{Denied: "user"}
				}
			},
			status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "term", elapsed: time.Hour + time.Minute,
		},
		"too many questions": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				for range maxQuestions + 1 {
					tool.ask("q")
				}
				return works(ctx, time.Hour)
			}},
			change: func(c *owner) {
				c.p.Request.Ask = func(ctx context.Context, _ spec.Question) spec.Answer {
					<-ctx.Done()
					return spec.Answer{Denied: "timeout"}
				}
			},
			status: api.StatusProtocolError, reason: api.ReasonTooManyQuestions, stage: "term",
		},
		"CPU time": {
			tool: &played{work: untilEnded, burns: true}, change: func(c *owner) { c.p.Bounds.CPUTime = 10 * time.Second },
			status: api.StatusCPULimit, reason: api.ReasonCPUTime, stage: "term", elapsed: -1,
			check: func(t *testing.T, tool *played, _ *api.Result) {
				if burnt := tool.call.marks.stop.Sub(tool.began); burnt < 10*time.Second || burnt > 10*time.Second+minCPUCheck {
					t.Errorf("stopped after %s of CPU time", burnt)
				}
			},
		},
		"never starts": {
			tool: &played{neverStarts: true, deaf: true}, status: api.StatusStartFailed, reason: api.ReasonSlow, stage: "none", elapsed: -1,
		},
		"ends while it starts": { // the end of its output may be seen first
			tool: &played{endsStarting: true}, status: api.StatusStartFailed, reason: api.ReasonStart, stage: "none", elapsed: time.Millisecond,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if r.Exit.Code == nil || *r.Exit.Code != 2 || !strings.Contains(r.ToolError.Message, "it exited with status 2") {
					t.Errorf("exit %+v, %s", r.Exit, r.ToolError.Message)
				}
			},
		},
		"deadline at the start": {
			tool: &played{neverStarts: true, deaf: true}, change: func(c *owner) { c.p.Timeout.Timeout = time.Second },
			status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "kill", elapsed: 3 * time.Second,
		},
		"processes that come as the time for the kill is nearly over": {
			tool:   &played{spawnTime: 2890 * time.Millisecond, killTime: 100 * time.Millisecond},
			change: func(c *owner) { c.p.Timeout.Timeout, c.p.Grace = 2*time.Second, 0 },
			status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "kill", elapsed: 2990 * time.Millisecond,
			did: []string{"SIGKILL", "boost"},
			check: func(t *testing.T, _ *played, r *api.Result) {
				if r.Kill.Survivors != 0 || r.Kill.LatencyUs != 100_000 {
					t.Errorf("%+v", r.Kill)
				}
			},
		},
		"the launcher ends all in the grace": {
			tool: &played{deaf: true, launcherLost: true, work: func(ctx context.Context, tool *played) error {
				<-tool.told
				tool.die(syscall.SIGKILL)
				return works(ctx, time.Hour)
			}},
			status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "kill", elapsed: time.Minute,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if !slices.Equal(r.Kill.Signals, []string{"SIGTERM", "SIGKILL"}) {
					t.Errorf("signals %q", r.Kill.Signals)
				}
			},
		},
		"result after an abort": {
			tool: &played{work: answered(nil), deaf: true}, then: func(c *owner) { time.Sleep(5 * time.Second); c.Abort(api.ReasonUser) },
			status: api.StatusOK, stage: "term", elapsed: 5 * time.Second,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if r.Overran || r.Kill.Cause != "abort" || !strings.HasPrefix(r.Message, `[NOTE] Tool "tool" was aborted after `) || !strings.Contains(r.Message, "(user). Its result came all the same, and is complete.") {
					t.Errorf("overran %t, cause %q, message %q", r.Overran, r.Kill.Cause, r.Message)
				}
			},
		},
		"soft budget in the grace": {
			tool: &played{work: untilEnded, deaf: true}, change: func(c *owner) { c.p.Timeout.SoftBudget, c.p.Grace = 3*time.Second, 20*time.Second },
			then:   func(c *owner) { time.Sleep(time.Second); c.Abort(api.ReasonUser) },
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "kill", elapsed: 21 * time.Second,
			check: func(t *testing.T, _ *played, r *api.Result) {
				if !r.Overran {
					t.Error("it has not overrun")
				}
			},
		},
		"abort while asking": {
			tool: &played{work: func(ctx context.Context, tool *played) error { tool.ask("q"); return works(ctx, time.Hour) }},
			change: func(c *owner) {
				c.p.Request.Ask = func(ctx context.Context, _ spec.Question) spec.Answer {
					c.Abort(api.ReasonUser)
					<-ctx.Done()
					return spec.Answer{Denied: "cancelled"}
				}
			},
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "term",
		},
		"tidies up behind its stream in the grace": {
			tool: &played{deaf: true, work: func(_ context.Context, tool *played) error {
				<-tool.told
				time.AfterFunc(1500*time.Millisecond, func() { tool.die(0) })
				return host.ErrDisconnected
			}},
			then:   func(c *owner) { time.Sleep(time.Second); c.Abort(api.ReasonUser) },
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "term", elapsed: 2500 * time.Millisecond,
		},
		"a question that nobody can be asked": {
			tool:   &played{work: func(_ context.Context, tool *played) error { return tool.refused("headless") }},
			status: api.StatusOK, stage: "none",
		},
		"a question in the grace": {
			tool: &played{deaf: true, work: func(_ context.Context, tool *played) error {
				<-tool.told
				return tool.refused("cancelled")
			}},
			change: func(c *owner) {
				c.p.Request.Ask = func(context.Context, spec.Question) spec.Answer { panic("nobody is asked now") }
			},
			status: api.StatusOK, stage: "term", elapsed: time.Minute,
		},
		"abort at the start": {
			tool: &played{neverStarts: true}, then: func(c *owner) { time.Sleep(time.Second); c.Abort(api.ReasonUser) },
			status: api.StatusCancelled, reason: api.ReasonUser, stage: "term", elapsed: time.Second + meetTime,
		},
		"out of memory": { // the kernel has begun to kill already
			tool: &played{work: untilEnded, deaf: true}, then: func(c *owner) { time.Sleep(5 * time.Second); c.OutOfMemory() },
			status: api.StatusOOM, did: []string{"SIGKILL"}, stage: "kill", elapsed: 5 * time.Second,
		},
		"too much output": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				for range 100 {
					tool.say("more than that")
				}
				return works(ctx, time.Hour)
			}},
			change: func(c *owner) { c.p.Bounds.OutputTotalBytes = 1000 }, status: api.StatusOutputLimit, stage: "term",
		},
		"a result, and no end of the stream": {
			tool:   &played{work: func(ctx context.Context, tool *played) error { tool.result(nil); return works(ctx, time.Hour) }},
			status: api.StatusOK, stage: "none", elapsed: meetTime,
		},
		"lives on for other calls": {
			tool: &played{livesOn: true, work: func(_ context.Context, tool *played) error {
				if len(tool.timers) == 0 {
					tool.result(toolError) // the timer of the call before it would end it
				}
				tool.result(nil)
				return nil
			}},
			change: func(c *owner) { c.p.Request.Keep = &spec.Keep{} },
			status: api.StatusOK, stage: "none", did: []string{"share", "release"},
		},
		"an error does not end what lives on": {
			tool:   &played{livesOn: true, work: func(_ context.Context, tool *played) error { tool.result(toolError); return nil }},
			change: func(c *owner) { c.p.Request.Keep = &spec.Keep{} }, status: api.StatusToolError, stage: "none", did: []string{"share", "release"},
		},
		"another call ends its processes": {
			tool: &played{work: untilEnded},
			then: func(c *owner) {
				time.Sleep(5 * time.Second)
				c.Collateral()
			},
			status: api.StatusCollateral, reason: api.ReasonCollateral, stage: "term", elapsed: 5 * time.Second,
		},
		"another call has ended its processes": {
			tool: &played{ending: true, work: func(ctx context.Context, tool *played) error {
				tool.die(syscall.SIGKILL)
				<-ctx.Done()
				return ctx.Err()
			}},
			status: api.StatusCollateral, reason: api.ReasonCollateral,
		},
		"exits without a result": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				tool.die(0)
				<-ctx.Done()
				return ctx.Err()
			}},
			status: api.StatusNoResult, stage: "none",
		},
		"ends by itself while the host is stopped": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				err := works(ctx, 50*time.Second)
				tool.result(toolError)
				return err
			}},
			then: stopped, status: api.StatusToolError, stage: "none", elapsed: 62 * time.Second,
		},
		"ends during a stop of the host by the launcher's timer": {
			tool: &played{launcherLost: true, work: func(ctx context.Context, tool *played) error {
				_ = works(ctx, 61*time.Second)
				tool.die(syscall.SIGKILL)
				<-ctx.Done()
				return ctx.Err()
			}},
			then: stopped, status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "kill", elapsed: 62 * time.Second,
		},
		"goes on during a stop of the host": {
			tool: &played{work: untilEnded},
			then: stopped, status: api.StatusTimeout, reason: api.ReasonDeadline, stage: "term", elapsed: 62*time.Second + hearsTime,
		},
		"crashes": {
			tool: &played{work: func(ctx context.Context, tool *played) error {
				tool.die(syscall.SIGSEGV)
				<-ctx.Done()
				return ctx.Err()
			}},
			status: api.StatusCrashed, reason: api.ReasonSignal, stage: "none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := cmp.Or(test.tool, &played{})
				c := owned(tool, test.change)
				if test.then != nil {
					test.then(c)
				}
				r := c.Result()
				<-c.Gone()
				if r.Status != test.status || test.reason != "" && r.Reason != test.reason || test.stage != "" && r.Kill.Stage != test.stage {
					t.Errorf("%s (%s), stage %s: %s", r.Status, r.Reason, r.Kill.Stage, r.Message)
				}
				if got := c.marks.empty.Sub(c.marks.admitted); test.elapsed >= 0 && got != test.elapsed {
					t.Errorf("it took %s, want %s", got, test.elapsed)
				}
				if test.did != nil && !slices.Equal(tool.did, test.did) {
					t.Errorf("the host did %q, want %q", tool.did, test.did)
				}
				if test.check != nil {
					test.check(t, tool, r)
				}
				if left := c.Tasks.Wait(time.Minute); len(left) > 0 {
					t.Errorf("goroutines left: %q", left)
				}
			})
		})
	}
}

// stopped holds the host up from before the deadline until after it.
func stopped(o *owner) {
	time.Sleep(40 * time.Second)
	o.send(heldUp(22 * time.Second))
}

type heldUp time.Duration

func (in heldUp) take(*owner, time.Time) { time.Sleep(time.Duration(in)) }
