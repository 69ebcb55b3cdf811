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

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
)

// tree is a call's processes and what holds them.
type tree struct {
	group   *cgroup.Group
	process *sandbox.Process
	// lifetime ends when the call has its result.
	lifetime context.Context
	end      context.CancelFunc
	helpers  sync.WaitGroup
	// exitTold is closed when the owner has taken the tool's wait status.
	exitTold chan struct{}
	// executed: the tool's program has begun, so it may have done something.
	executed atomic.Bool
}

func (t *tree) isLauncher(pid int) bool { return pid == t.process.PID() }

func (t *tree) isGone() bool {
	select {
	case <-t.process.Gone():
		return true
	default:
		return false
	}
}

// kill ends every process. CPU and io limits are lifted first: a quota delays
// even SIGKILL by seconds. It may be called again, and by anyone.
func (t *tree) kill() {
	_ = t.group.Lift()
	_ = t.group.Kill()
	t.process.Kill()
}

// start brings the tool up and hands the owner a connection, or the reason why
// there is none.
func (c *Call) start(ctx context.Context) {
	defer close(c.started)
	conn, err := host.Connect(ctx, host.Options{
		RuntimeDir: c.s.runtime.path,
		SocketDir:  c.plan.SocketDir(),
		Stdout:     c.output.toolStdout(),
		Start:      func(env []string, dir string) (*host.Child, error) { return c.spawn(ctx, env, dir) },
	})
	if err != nil {
		c.send(input{kind: inStartFailed, err: err})
		return
	}
	if !c.send(input{kind: inConnected, conn: conn}) {
		go conn.Close()
	}
}

// spawn makes the group, forks the launcher into it and waits until the tool
// runs. What an error leaves behind is removed here, unless processes exist:
// those are the owner's to kill.
func (c *Call) spawn(ctx context.Context, env []string, socketDir string) (*host.Child, error) {
	group, err := c.s.groups.NewGroup(c.id, c.groupLimits())
	if err != nil {
		return nil, err
	}
	pipes, err := c.output.open(c.request.Command != nil)
	if err != nil {
		return nil, errors.Join(err, group.Remove())
	}
	process, err := c.launch(ctx, group, pipes, env, socketDir)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeHostEnds()
		return nil, errors.Join(err, discard(group))
	}
	t := &tree{group: group, process: process, exitTold: make(chan struct{})}
	t.lifetime, t.end = context.WithCancel(context.Background())
	c.spawned = t
	c.watch(t)
	stdout := c.output.pump(pipes)
	c.send(input{kind: inSpawned, tree: t})
	if err := process.Started(ctx); err != nil {
		return nil, c.explainStart(err)
	}
	t.executed.Store(true)
	return &host.Child{
		ID: strconv.Itoa(process.PID()), Stdout: stdout, SocketDir: process.SocketDir(),
		Dial: process.Dial, PeerUID: uint32(process.UID()), Gone: process.Gone(), Kill: t.kill,
	}, nil
}

// groupLimits are those of the whole group: what toolhost itself runs in it
// comes on top of the tool's own.
func (c *Call) groupLimits() cgroup.Limits {
	limits := c.limits.group()
	if limits.Pids > 0 && c.request.Command != nil {
		limits.Pids += adapterTasks
	}
	return limits
}

// limitTasks makes the pids limit exact, now that everything of toolhost's own
// is there: of a command not even the first process is.
func (c *Call) limitTasks() {
	limit := finite(c.limits.Pids)
	if limit == 0 || c.tree == nil {
		return
	}
	own, ok := c.tree.process.Tasks()
	if c.request.Command != nil {
		all, err := c.tree.group.Tasks()
		own, ok = all, err == nil
	}
	if !ok {
		return // it stays as it was: a little too high
	}
	if err := c.tree.group.LimitTasks(limit + own + spareTasks); err != nil {
		c.s.config.Logger.Warn("cannot make the limit of processes exact", "call", c.id, "error", err)
	}
}

// discard removes a group in which a birth may still be under way.
func discard(group *cgroup.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), budget.AnswerMargin)
	defer cancel()
	return errors.Join(group.Kill(), group.WaitEmpty(ctx), group.Remove())
}

func (c *Call) launch(ctx context.Context, group *cgroup.Group, pipes *pipes, env []string, socketDir string) (*sandbox.Process, error) {
	if own := c.plan.SocketDir(); own != "" {
		socketDir = own
	}
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
	return c.resolution.Timeout + c.grace + budget.AnswerMargin
}

// watch tells the owner of the tool's end and of its memory limit.
func (c *Call) watch(t *tree) {
	t.helpers.Go(func() {
		defer close(t.exitTold)
		status, ok := <-t.process.Exited()
		if !ok { // the launcher was killed first, and everything with it
			status = syscall.WaitStatus(syscall.SIGKILL)
		}
		c.send(input{kind: inExited, exit: status})
	})
	t.helpers.Go(func() {
		select {
		case <-t.group.OOM():
			c.send(input{kind: inOOM})
		case <-t.lifetime.Done():
		}
	})
}

// explainStart names the executable in what the launcher reported.
func (c *Call) explainStart(err error) error {
	var setup *sandbox.SetupError
	if !errors.As(err, &setup) || !setup.Executing() {
		return err
	}
	switch setup.Err {
	case syscall.ENOEXEC:
		return fmt.Errorf("cannot execute %s: it is neither a program of this machine nor a script with #!: build it for this architecture", c.binary.path)
	case syscall.ENOENT:
		return fmt.Errorf("cannot execute %s: its interpreter or the working directory %q does not exist", c.binary.path, c.dir)
	}
	return fmt.Errorf("cannot execute %s: %w", c.binary.path, setup.Err)
}
