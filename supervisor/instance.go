package supervisor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/pace"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
)

// instance is a tool's process tree and what holds it: that of one call, or
// one that is kept for the calls to come.
type instance struct {
	group   *cgroup.Group
	process *sandbox.Process
	pipes   *pipes
	conn    *host.Conn // once there is one; written before a second guest comes
	held    *held      // what the connection has of the host's memory
	// lifetime ends when the instance is freed.
	lifetime context.Context
	end      context.CancelFunc
	watchers sync.WaitGroup
	readers  sync.WaitGroup
	// stdout and stderr are the plugin's. stdoutEnded says that stdout is over,
	// also where nobody read it.
	stdout, stderr *eagerReader
	stdoutEnded    func()
	// exitTold is closed when all guests have taken the tool's wait status.
	exitTold chan struct{}
	// executed: the tool's program has begun, so it may have done something.
	executed atomic.Bool
	// launcherLost: the launcher has ended, and nobody here has killed it.
	launcherLost atomic.Bool
	killed       atomic.Bool   // by kill
	freed        chan struct{} // closed when nothing of it is left
	unlock       func()        // gives back the tool's data; nil where it does not hold them itself
	logger       hclog.Logger
	tasks        *tasks.Tasks                  // the supervisor's
	load         func() (running, waiting int) // of its gate
	stdoutPace   pace.Pace

	guests
}

func newInstance(c *Call, group *cgroup.Group, process *sandbox.Process, p *pipes, held *held) *instance {
	i := &instance{
		group: group, process: process, pipes: p, exitTold: make(chan struct{}), freed: make(chan struct{}),
		logger: c.s.config.Logger, guests: newGuests(c), held: held, tasks: &c.s.tasks,
		load: c.s.gate.Load, stdoutPace: pace.Pace{Load: c.s.gate.Load},
	}
	i.lifetime, i.end = context.WithCancel(context.Background())
	return i
}

func (i *instance) isLauncher(pid int) bool { return pid == i.process.PID() }

// kill ends every process. CPU and io limits are lifted first: a quota delays
// even SIGKILL by seconds. It may be called again, and by anyone. An error is
// logged, too.
func (i *instance) kill() error {
	i.killed.Store(true)
	lifted, killed := i.group.Lift(), errors.Join(i.group.Kill(), i.process.Kill())
	if lifted != nil {
		i.logger.Warn("cannot lift the limits of a call that is to die: that may take longer", "group", i.group.Path(), "error", lifted)
	}
	if killed != nil {
		i.logger.Error("cannot kill a call", "group", i.group.Path(), "error", killed)
	}
	return errors.Join(lifted, killed)
}

// free gives back what an instance held whose processes are gone.
func (i *instance) free() {
	i.end()
	i.pipes.closeHostEnds()
	i.stdoutEnded()
	if i.conn != nil {
		i.conn.Close() // go-plugin's own clean-up
	}
	i.held.release()
	i.process.Release()
	i.watchers.Wait()
	i.removeGroup()
}

// freeLater does so when the kernel lets go of the processes at last.
func (i *instance) freeLater() {
	i.end()
	i.pipes.closeHostEnds()
	i.stdoutEnded()
	if i.conn != nil {
		i.tasks.Run("close a connection", i.conn.Close)
	}
	i.held.release()
	i.process.Abandon()
	<-i.process.Gone()
	if i.group.WaitEmpty(context.Background()) == nil {
		i.removeGroup()
	}
}

func (i *instance) removeGroup() {
	if err := i.group.Remove(); err != nil {
		i.logger.Warn("cannot remove the group of a call", "group", i.group, "error", err)
	}
	if i.unlock != nil {
		i.unlock()
	}
	close(i.freed)
}

// spareTasks are left to toolhost's own programs when their number is known, for
// Go's runtime may want another thread.
const spareTasks = 2

// limitTasks makes the pids limit exact, now that everything of toolhost's own
// is there: of what an adapter runs not even the first process is.
func (i *instance) limitTasks(c *Call) {
	limit := c.p.TaskLimit()
	if limit == 0 {
		return
	}
	own, ok := i.process.Tasks()
	if c.p.Adapted() {
		all, err := i.group.Tasks()
		own, ok = all, err == nil
	}
	if !ok {
		return // it stays as it was: a little too high
	}
	if err := i.group.LimitTasks(limit + own + spareTasks); err != nil {
		c.log().Warn("cannot make the limit of processes exact", "error", err)
	}
}

// watch reports the tool's end and its memory limit.
func (i *instance) watch() {
	i.watchers.Go(func() {
		defer close(i.exitTold)
		status, ok := <-i.process.Exited()
		if !ok { // the launcher was killed first, and everything with it
			i.launcherLost.Store(!i.killed.Load())
			status = syscall.WaitStatus(syscall.SIGKILL)
		}
		if i.close() {
			i.line.keeper.end(i)
		}
		i.tell(input{kind: inExited, exit: status})
	})
	i.watchers.Go(func() {
		select {
		case <-i.group.OOM():
			i.tell(input{kind: inOOM})
		case <-i.lifetime.Done():
		}
	})
}
