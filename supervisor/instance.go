package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
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
	tasks        *tasks                        // the supervisor's
	load         func() (running, waiting int) // of its gate
	stdoutPace   pace

	guests
}

func newInstance(c *Call, group *cgroup.Group, process *sandbox.Process, p *pipes) *instance {
	i := &instance{
		group: group, process: process, pipes: p, exitTold: make(chan struct{}), freed: make(chan struct{}),
		logger: c.s.config.Logger, guests: newGuests(c), held: c.held, tasks: &c.s.tasks,
		load: c.s.gate.Load, stdoutPace: pace{load: c.s.gate.Load},
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
		i.tasks.run("close a connection", i.conn.Close)
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

// start brings the tool up and hands the owner a connection, or the reason why
// there is none.
func (c *Call) start(ctx context.Context) {
	defer close(c.started)
	defer c.policy.Close()
	if kept := c.line.take(c); kept != nil {
		c.adopt(kept)
		return
	}
	c.held = c.s.hold(c.id)
	conn, err := host.Connect(ctx, host.Options{
		Received: c.held.received, Decoded: c.held.decoded,
		RuntimeDir: c.s.runtime.path,
		SocketDir:  c.plan.SocketDir(),
		Stdout:     writerFunc(func(p []byte) (int, error) { return c.spawned.passStdout(p) }),
		Start: func(env []string, dir string) (*host.Child, error) {
			child, err := c.spawn(ctx, env, dir)
			return child, hostFailure(err)
		},
	})
	if err != nil {
		c.held.release()
		c.s.doubtAfter(ctx, err)
		c.send(input{kind: inStartFailed, err: err})
		return
	}
	c.held.conn.Store(conn)
	if !c.send(input{kind: inConnected, conn: conn}) {
		c.s.tasks.run("close a connection", conn.Close)
	}
}

// hostFailure is an error of the host's own, unless it is known to be another's.
func hostFailure(err error) error {
	if _, known := errors.AsType[*refusal](err); known || err == nil {
		return err
	}
	return refuse(api.StatusStartFailed, api.ReasonHost, err)
}

// adopt has the owner take over a kept instance as if it had just come up.
func (c *Call) adopt(kept *instance) {
	c.spawned = kept
	usage, err := kept.group.Usage()
	if err != nil {
		c.log().Warn("cannot read what a kept process has used", "error", err)
	}
	c.send(input{kind: inSpawned, instance: kept, before: &usage})
	c.send(input{kind: inConnected, conn: kept.conn})
}

// spawn makes the group, forks the launcher into it and waits until the tool
// runs. What an error leaves behind is removed here, unless processes exist:
// those are the owner's to kill.
func (c *Call) spawn(ctx context.Context, env []string, socketDir string) (*host.Child, error) {
	over, err := c.s.starts.begin(ctx, c.limits.CPUWeight)
	if err != nil {
		return nil, err
	}
	defer over()
	group, err := c.s.groups.NewGroup(c.id, c.groupLimits())
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes(c.request.Command != nil)
	if err != nil {
		return nil, errors.Join(err, group.Remove())
	}
	process, err := c.launch(ctx, group, pipes, env, socketDir)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeHostEnds()
		c.s.discard(group)
		return nil, err
	}
	group.Lead(process.PID())
	i := newInstance(c, group, process, pipes)
	c.spawned = i
	i.watch()
	stdout := i.pump(c.request.Command)
	c.send(input{kind: inSpawned, instance: i})
	err = process.Started(ctx)
	if err == nil {
		err = group.LimitCPU()
	}
	if err != nil {
		i.stdoutEnded() // nobody reads what nobody has written
		return nil, c.explainStart(err)
	}
	i.executed.Store(true)
	return &host.Child{
		ID: strconv.Itoa(process.PID()), Stdout: stdout, SocketDir: process.SocketDir(),
		Dial: process.Dialer(), PeerUID: uint32(process.UID()), Gone: process.Gone(), Kill: func() { _ = i.kill() },
	}, nil
}

// groupLimits are those of the whole group: what toolhost itself runs in it
// comes on top of the tool's own.
func (c *Call) groupLimits() cgroup.Limits {
	if c.s.config.NoCgroup {
		return cgroup.Limits{}
	}
	return c.treeLimits()
}

// treeLimits are groupLimits, whatever is to enforce them.
func (c *Call) treeLimits() cgroup.Limits {
	limits := c.limits.group()
	if limits.Pids > 0 && c.adapted() {
		limits.Pids += adapterTasks
	}
	return limits
}

// adapted says whether the tool is what an adapter of toolhost's own will run.
func (c *Call) adapted() bool { return c.request.Command != nil || c.request.Tool.Adapter }

// limitTasks makes the pids limit exact, now that everything of toolhost's own
// is there: of what an adapter runs not even the first process is.
func (c *Call) limitTasks() {
	limit := finite(c.limits.Pids)
	if limit == 0 || c.instance == nil || c.s.config.NoCgroup {
		return
	}
	own, ok := c.instance.process.Tasks()
	if c.adapted() {
		all, err := c.instance.group.Tasks()
		own, ok = all, err == nil
	}
	if !ok {
		return // it stays as it was: a little too high
	}
	if err := c.instance.group.LimitTasks(limit + own + spareTasks); err != nil {
		c.log().Warn("cannot make the limit of processes exact", "error", err)
	}
}

const removeEvery = time.Second

// discard removes a group in which a birth may still be under way: that ends by
// itself, somewhat later.
func (s *Supervisor) discard(group *cgroup.Group) {
	ctx, cancel := context.WithTimeout(context.Background(), budget.AnswerMargin)
	defer cancel()
	err := errors.Join(group.Kill(), group.WaitEmpty(ctx), group.Remove())
	if err == nil {
		return
	}
	s.config.Logger.Warn("cannot remove the group of a start that was given up: trying again", "group", group.Path(), "error", err)
	s.tasks.run("remove a group", func() {
		for group.Remove() != nil {
			select {
			case <-s.ready.stop.Done():
				return // the next sweep takes it
			case <-time.After(removeEvery):
			}
		}
	})
}

func (c *Call) launch(ctx context.Context, group *cgroup.Group, pipes *pipes, env []string, socketDir string) (*sandbox.Process, error) {
	c.launching.Store(true)
	return c.s.host.Start(ctx, sandbox.Spec{
		Plan: c.plan, Path: c.path, Args: append([]string{c.shownPath()}, c.toolArgs()...),
		Env: c.environment(env), Dir: c.dir,
		Stdio: [3]*os.File{c.s.null, pipes.stdout.child, pipes.stderr.child}, Extra: pipes.extra(),
		SocketDir: socketDir, Timer: c.launcherTimer(), KillFile: group.KillFile, Into: group.Born,
	})
}

// shownPath is the tool's own name for itself.
func (c *Call) shownPath() string {
	if c.plan.Confined() {
		return c.path
	}
	return c.binary.path
}

// launcherTimer is when the launcher ends the tree by itself.
func (c *Call) launcherTimer() time.Duration {
	if c.resolution.Timeout == budget.Infinite {
		return 0
	}
	return budget.AnswerWithin(c.resolution.Timeout, c.grace)
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

// explainStart names the executable in what the launcher reported.
func (c *Call) explainStart(err error) error {
	var setup *sandbox.SetupError
	if !errors.As(err, &setup) || sandbox.OfTheHost(err) || !setup.Executing() {
		return err
	}
	why := setup.Err
	switch setup.Err {
	case syscall.ENOEXEC:
		why = errors.New("it is neither a program of this machine nor a script with #!: build it for this architecture")
	case syscall.ENOENT:
		why = fmt.Errorf("its interpreter or the working directory %q does not exist: install it below /usr, or grant the call to read it", c.dir)
	}
	return refuse(api.StatusStartFailed, api.ReasonNotExecutable, fmt.Errorf("cannot execute %s: %w", c.binary.path, why))
}
