// Package process makes and ends the process trees of tools: a group of the cgroup,
// a launcher in it, pipes and a connection. One is made whole or not at all, and
// freed whole.
package process

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

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
)

// KillTime is how long a kill may take of budget.AnswerMargin; the rest is for
// draining and the result.
const KillTime = budget.AnswerMargin * 9 / 10

// Process is a tool's process tree and what holds it: that of one call, or one
// that is kept for the calls to come. Its methods may be called from any goroutine.
type Process struct {
	group    *cgroup.Group
	launcher *sandbox.Process
	pipes    *pipes
	waits    bool  // for its program: read and written by the one that has it
	held     *held // what the connection has of the host's memory
	audience audience
	// lifetime ends when the process is freed.
	lifetime context.Context
	end      context.CancelFunc
	watchers sync.WaitGroup
	readers  sync.WaitGroup
	// stdout and stderr are the plugin's. stdoutEnded says that stdout is over,
	// also where nobody read it.
	stdout, stderr *eagerReader
	stdoutEnded    func()
	// died is closed when the tool has ended, exitReported when the audience has heard
	// of it, freed when nothing of the process is left.
	died, exitReported, freed chan struct{}
	executed                  atomic.Pointer[time.Time] // when the tool's program began, so that it may have done something
	launcherLost              atomic.Bool               // the launcher has ended, and nobody here has killed it
	killed                    atomic.Bool               // by Kill
	// AtEnd is called when the process is freed, AtSpent when it is to serve no further
	// calls. They are set before anybody frees it, or gives it a network.
	AtEnd, AtSpent func()

	logger     hclog.Logger
	tasks      *tasks.Tasks
	load       func() (running, waiting int) // of the gate for calls
	stdoutPace pace.Pace

	network atomic.Pointer[Network] // nil without network grants

	mu       sync.Mutex
	conn     *host.Conn // nil until there is one
	released bool       // a connection is wanted no more
}

func (m *Maker) newProcess(group *cgroup.Group, launcher *sandbox.Process, p *pipes) *Process {
	i := &Process{
		group: group, launcher: launcher, pipes: p, logger: m.Logger, tasks: m.Tasks,
		died: make(chan struct{}), exitReported: make(chan struct{}), freed: make(chan struct{}),
		load: m.Load, stdoutPace: pace.Pace{Load: m.Load},
	}
	i.lifetime, i.end = context.WithCancel(context.Background())
	return i
}

func (p *Process) isLauncher(pid int) bool { return pid == p.launcher.PID() }

// Terminate sends SIGTERM to every process but the launcher, and SIGCONT so that
// stopped ones see it. pids are those that were there.
func (p *Process) Terminate() (pids []int, err error) {
	return p.group.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, p.isLauncher)
}

// Kill sends SIGKILL to all processes. CPU and io limits are lifted first: a quota
// delays even that by seconds. It may be called again. An error is logged, too.
func (p *Process) Kill() error {
	p.killed.Store(true)
	lifted, killed := p.group.Lift(), errors.Join(p.group.Kill(), p.launcher.Kill())
	if lifted != nil {
		p.logger.Warn("cannot lift the limits of a call to be killed: the kill may take longer", "group", p.group.Path(), "error", lifted)
	}
	if killed != nil {
		p.logger.Error("cannot kill a call", "group", p.group.Path(), "error", killed)
	}
	return errors.Join(lifted, killed)
}

// Boost helps processes that are being killed to die on a busy machine.
func (p *Process) Boost() error { return p.group.Boost() }

// Processes are those that live, but the launcher.
func (p *Process) Processes() ([]int, error) {
	pids, err := p.group.Processes()
	return slices.DeleteFunc(pids, p.isLauncher), err
}

// Ended waits until no process is left and their end was reported, or until ctx
// ends.
func (p *Process) Ended(ctx context.Context) error {
	for _, over := range []<-chan struct{}{p.launcher.Gone(), p.exitReported} {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.group.WaitEmpty(ctx)
}

// Spend says that the process is of no use to further calls.
func (p *Process) Spend() {
	if p.AtSpent != nil {
		p.AtSpent()
	}
}

// GiveUp is for processes that SIGKILL does not end: how many there are.
func (p *Process) GiveUp() (survivors int) {
	p.group.EndBoost()
	pids, err := p.group.Processes()
	if err == nil && len(pids) == 0 && p.launcher.HasEnded() {
		return 0 // only the starter is late
	}
	return max(len(pids), 1)
}

// CPU is the CPU time used so far.
func (p *Process) CPU() (time.Duration, error) { return p.group.CPU() }

// Usage is what has been used so far.
func (p *Process) Usage() (cgroup.Usage, error) { return p.group.Usage() }

// Begin has what is used counted from now on.
func (p *Process) Begin() (cgroup.Baseline, error) { return p.group.Begin() }

// Current is what is used at this moment.
func (p *Process) Current() (cgroup.Current, error) { return p.group.Current() }

// Executed is when the tool's program began; zero before.
func (p *Process) Executed() time.Time {
	if at := p.executed.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Killed says that Kill was called.
func (p *Process) Killed() bool { return p.killed.Load() }

// LauncherLost says that the launcher has ended, and not by Kill.
func (p *Process) LauncherLost() bool { return p.launcherLost.Load() }

// UID is the user that the tool has.
func (p *Process) UID() int { return p.launcher.UID() }

// Warn logs what has failed.
func (p *Process) Warn(what string, err error) { p.logger.Warn(what, "error", err) }

// Died is closed when the tool has ended.
func (p *Process) Died() <-chan struct{} { return p.died }

// Freed is closed when nothing of the process is left.
func (p *Process) Freed() <-chan struct{} { return p.freed }

// Conn is the connection to the tool; nil before there is one.
func (p *Process) Conn() *host.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

// Forever is for the launchers' timers of calls without a timeout.
const Forever = 10 * 365 * 24 * time.Hour

// SetTimer has the launcher end the processes after this time at the earliest. A
// launcher that is gone needs none. An error is logged, too.
func (p *Process) SetTimer(left time.Duration) error {
	err := p.launcher.SetTimer(left)
	if err == nil || errors.Is(err, sandbox.ErrGone) || p.launcher.HasEnded() {
		return nil
	}
	p.logger.Warn("cannot move a launcher's timer: it may end its processes too early", "pid", p.launcher.PID(), "error", err)
	return err
}

// OutputTaken are closed when what was written so far has been read.
func (p *Process) OutputTaken() []<-chan struct{} {
	return []<-chan struct{}{p.stdout.empty(), p.stderr.empty()}
}

// Workspace is nil where the sandbox has none.
func (p *Process) Workspace() *os.File { return p.launcher.Workspace() }

// use keeps the connection; false if the process is freed already.
func (p *Process) use(conn *host.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return false
	}
	p.conn = conn
	p.held.conn.Store(conn)
	return true
}

// letGo gives back all that does not depend on the processes' end. conn is to be
// closed, and may be nil.
func (p *Process) letGo() (conn *host.Conn) {
	p.mu.Lock()
	conn, p.released = p.conn, true
	p.mu.Unlock()
	p.end()
	p.pipes.closeHostEnds()
	p.stdoutEnded()
	return conn
}

// Free gives back what a process held that is gone.
func (p *Process) Free() {
	if conn := p.letGo(); conn != nil {
		conn.Close()
	}
	p.held.release()
	p.endNetwork()
	p.launcher.Release()
	p.watchers.Wait()
	p.remove()
}

// FreeLater does so when the kernel lets go of the processes at last. It does not
// wait for that.
func (p *Process) FreeLater() { p.tasks.Run("free what does not die", p.freeLater) }

func (p *Process) freeLater() {
	if conn := p.letGo(); conn != nil {
		p.tasks.Run("close a connection", conn.Close)
	}
	p.held.release()
	p.endNetwork()
	p.launcher.Abandon()
	<-p.launcher.Gone()
	if p.group.WaitEmpty(context.Background()) == nil {
		p.remove()
	}
}

func (p *Process) remove() {
	if err := p.group.Remove(); err != nil {
		p.logger.Warn("cannot remove the group of a call", "group", p.group, "error", err)
	}
	if p.AtEnd != nil {
		p.AtEnd()
	}
	close(p.freed)
}

// Destroy kills what lives and frees the process.
func (p *Process) Destroy() {
	_ = p.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), KillTime)
	defer cancel()
	select {
	case <-p.launcher.Gone():
	case <-ctx.Done():
	}
	if p.launcher.HasEnded() && p.group.WaitEmpty(ctx) == nil {
		<-p.exitReported
		p.Free()
		return
	}
	p.logger.Warn("cannot end a kept process: the kernel holds it", "pid", p.launcher.PID())
	p.FreeLater()
}
