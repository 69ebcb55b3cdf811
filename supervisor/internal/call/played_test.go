package call

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/process"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// played is a tool with its processes, as a test plays them, in time that stands
// still while nothing happens.
type played struct {
	call *owner
	// startTime passes before the tool answers; never with neverStarts, and then
	// nothing but the end of the start's context ends it, or not even that.
	startTime               time.Duration
	neverStarts, startHangs bool
	endsStarting            bool // with status 2
	// spawnTime passes before it has processes, killTime before they die of SIGKILL.
	spawnTime, killTime time.Duration
	// work is what the tool does in a call; nil is a result at once.
	work func(ctx context.Context, tool *played) error
	// deaf processes do not mind SIGTERM, undying ones not even SIGKILL.
	deaf, undying bool
	burns         bool // uses CPU time for as long as it lives
	ending        bool // by another call
	livesOn       bool // after a call that ends well
	launcherLost  bool
	lastOutput    func() // between the death and the end of the output; nil is nothing

	handle   func(*pluginv1.CallEvent, time.Time)
	answers  chan *pluginv1.AnswerRequest
	told     chan string // the reason of Cancel
	began    time.Time
	dead     chan struct{}
	die      func(syscall.Signal)
	released sync.Once
	freed    chan struct{}

	mu     sync.Mutex
	did    []string // by the host
	timers []time.Duration
}

func (p *played) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.did, what) {
		p.did = append(p.did, what)
	}
}

// come has its processes begin.
func (p *played) come(at time.Time) {
	p.began, p.dead, p.freed = at, make(chan struct{}), make(chan struct{})
	p.answers, p.told = make(chan *pluginv1.AnswerRequest, maxReplies), make(chan string, 1)
	p.die = func(by syscall.Signal) {
		p.released.Do(func() {
			close(p.dead)
			p.call.Tasks.Run("die", func() {
				p.call.Exited(syscall.WaitStatus(by))
				if p.lastOutput != nil {
					p.lastOutput()
				}
				p.call.OutputEnded(process.AllOutput)
			})
		})
	}
}

// bringUp is the starter's part.
func (p *played) bringUp(ctx context.Context, _ *Call) {
	p.come(time.Now())
	if p.startHangs {
		time.Sleep(time.Hour)
		p.call.StartFailed(errors.New("late"))
		return
	}
	time.Sleep(p.spawnTime)
	p.call.Spawned(p)
	if p.neverStarts {
		<-ctx.Done()
		p.call.StartFailed(ctx.Err())
		return
	}
	time.Sleep(p.startTime)
	if p.endsStarting {
		p.call.StartFailed(&host.HandshakeError{Ended: true, Reason: "it ended its output"})
		time.Sleep(time.Millisecond)
		p.die(2 << 8)
		return
	}
	p.call.Connected(p)
}

func (p *played) Terminate() ([]int, error) {
	p.note("SIGTERM")
	if !p.deaf {
		p.die(syscall.SIGTERM)
	}
	return []int{7}, nil
}

func (p *played) Kill() error {
	p.note("SIGKILL")
	if !p.undying {
		time.AfterFunc(p.killTime, func() { p.die(syscall.SIGKILL) })
	}
	return nil
}

func (p *played) Share(bool) { p.note("share") }

func (p *played) Release() { p.note("release") }

func (p *played) Boost() error { p.note("boost"); return nil }

func (p *played) Processes() ([]int, error) {
	if closed(p.dead) {
		return nil, nil
	}
	return []int{7}, nil
}

func (p *played) Ended(ctx context.Context) error {
	select {
	case <-p.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *played) GiveUp() int {
	left, _ := p.Processes()
	return len(left)
}

func (p *played) CPU() (time.Duration, error) {
	if !p.burns {
		return 0, nil
	}
	return time.Since(p.began), nil
}

func (p *played) Usage() (cgroup.Usage, error)     { return cgroup.Usage{}, nil }
func (p *played) Current() (cgroup.Current, error) { return cgroup.Current{}, nil }
func (p *played) Executed() time.Time              { return p.began }
func (p *played) Killed() bool                     { return false }
func (p *played) LauncherLost() bool               { return p.launcherLost }
func (p *played) EndedByAnother() bool             { return p.ending }
func (p *played) Instance() string                 { return api.InstanceFresh }
func (p *played) UID() int                         { return 0 }
func (p *played) Wear()                            { p.livesOn = false }
func (p *played) MayLiveOn() bool                  { return p.livesOn }
func (p *played) OutputTaken() []<-chan struct{}   { return nil }
func (p *played) Workspace() *os.File              { return nil }

func (p *played) SetTimer(left time.Duration) error {
	p.timers = append(p.timers, left)
	return nil
}

func (p *played) Leave(survivors bool) <-chan struct{} {
	p.call.Tasks.Run("free", func() { <-p.dead; close(p.freed) })
	return p.freed
}

func (p *played) Describe(context.Context) (*pluginv1.DescribeResponse, error) { return nil, nil }

// Call does the tool's work. Its stream ends with its process.
func (p *played) Call(ctx context.Context, _ *pluginv1.CallRequest, handle func(*pluginv1.CallEvent, time.Time)) error {
	p.handle = handle
	work := p.work
	if work == nil {
		work = func(context.Context, *played) error { p.result(nil); return nil }
	}
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.call.Tasks.Run("end the stream", func() {
		select {
		case <-p.dead:
			cancel(host.ErrDisconnected)
		case <-live.Done():
		}
	})
	if err := work(live, p); err != nil {
		return context.Cause(live)
	}
	return nil
}

func (p *played) Cancel(_ context.Context, _, reason string) error { p.told <- reason; return nil }

func (p *played) Acknowledge(context.Context, string, uint64) error { return nil }

func (p *played) Answer(_ context.Context, answer *pluginv1.AnswerRequest) error {
	p.answers <- answer
	return nil
}

func (p *played) result(err *pluginv1.ToolError) {
	p.handle(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Result{Result: &pluginv1.Result{Error: err}}}, time.Now())
}

func (p *played) say(text string) {
	p.handle(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Content{Content: &pluginv1.Content{Content: &pluginv1.Content_Text{Text: text}}}}, time.Now())
}

func (p *played) ask(id string) {
	p.handle(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Ask{Ask: &pluginv1.Ask{InteractionId: id, Prompt: "Well?"}}}, time.Now())
}

// refused asks, and ends well if that is refused for the reason.
func (p *played) refused(reason string) error {
	p.ask("q")
	var wrong *pluginv1.ToolError
	if answer := <-p.answers; answer.GetReason() != reason {
		wrong = &pluginv1.ToolError{Message: "refused as " + answer.GetReason()}
	}
	p.result(wrong)
	return nil
}

// works takes a while, unless it is ended.
func works(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func untilEnded(ctx context.Context, _ *played) error { return works(ctx, 1000*time.Hour) }

// owned begins a call of a minute, and two seconds of grace, with the tool.
func owned(tool *played, change func(*owner)) *owner {
	o := bare(spec.Request{Name: "tool"})
	o.p.Plan, o.p.Grace = &sandbox.Plan{}, 2*time.Second
	o.p.StartTimeout = new(prepare.Preparer).Operation(budget.Registration, o.p.Request).Timeout
	o.p.Timeout = budget.Resolution{Timeout: time.Minute, SoftBudget: time.Minute, Max: time.Hour}
	o.Start, tool.call = tool.bringUp, o
	if change != nil {
		change(o)
	}
	go o.run()
	return o
}

// bare is a call of a request of which nothing is known.
func bare(r spec.Request) *owner {
	p := new(prepare.Preparer).Bare(r)
	p.Bounds.OutputBytes = 1 << 10
	c := New(p, Base{
		Enter: func(context.Context) (func(), time.Duration, error) { return func() {}, 0, nil },
		Take:  func(*Call) (Tree, Peer) { return nil, nil },
		Load:  func() (int, int) { return 1, 0 }, Hidden: func() []string { return nil },
		Stuck: new(atomic.Int64), Looks: make(chan struct{}, MaxLooks), Tasks: new(tasks.Tasks), Log: hclog.NewNullLogger(),
	})
	// In a bubble nanosleep(2) does not let time pass.
	c.sleep = func(until time.Time) { time.Sleep(time.Until(until)) }
	return c.own()
}
