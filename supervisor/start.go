package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// birth brings the tool of a call up. Only the goroutine that does uses it.
type birth struct {
	*Call
	held  *held
	guest *guest // once there are processes
}

// bringUp hands the owner processes and a connection, or the reason why there is
// none.
func (c *Call) bringUp(ctx context.Context) {
	defer c.policy.Close()
	if kept := c.line.take(c); kept != nil {
		c.adopt(kept)
		return
	}
	b := &birth{Call: c, held: c.s.hold(c.id)}
	conn, err := host.Connect(ctx, host.Options{
		Received: b.held.received, Decoded: b.held.decoded,
		RuntimeDir: c.s.runtime.path,
		SocketDir:  c.plan.SocketDir(),
		Stdout:     writerFunc(func(p []byte) (int, error) { return b.guest.at.passStdout(p) }),
		Start: func(env []string, dir string) (*host.Child, error) {
			child, err := b.spawn(ctx, env, dir)
			return child, outcome.HostFailure(err)
		},
	})
	if err != nil {
		b.held.release()
		c.s.doubtAfter(ctx, err)
		c.send(input{kind: inStartFailed, err: err})
		return
	}
	b.held.conn.Store(conn)
	b.guest.conn = conn
	if !c.send(input{kind: inConnected, conn: conn}) {
		c.s.tasks.Run("close a connection", conn.Close)
	}
}

// adopt has the owner take over a kept instance as if it had just come up.
func (c *Call) adopt(kept *instance) {
	usage, err := kept.group.Usage()
	if err != nil {
		c.log().Warn("cannot read what a kept process has used", "error", err)
	}
	c.spawned = &guest{at: kept, call: c, before: usage, reused: true}
	c.send(input{kind: inSpawned, tree: c.spawned})
	c.send(input{kind: inConnected, conn: kept.conn})
}

// spawn makes the group, forks the launcher into it and waits until the tool
// runs. What an error leaves behind is removed here, unless processes exist:
// those are the owner's to kill.
func (b *birth) spawn(ctx context.Context, env []string, socketDir string) (*host.Child, error) {
	over, err := b.s.starts.begin(ctx, b.limits.CPUWeight)
	if err != nil {
		return nil, err
	}
	defer over()
	group, err := b.s.groups.NewGroup(b.id, b.groupLimits())
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes(b.request.Command != nil)
	if err != nil {
		return nil, errors.Join(err, group.Remove())
	}
	process, err := b.launch(ctx, group, pipes, env, socketDir)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeHostEnds()
		b.s.discard(group)
		return nil, err
	}
	group.Lead(process.PID())
	i := newInstance(b.Call, group, process, pipes, b.held)
	b.guest = &guest{at: i, call: b.Call}
	b.spawned = b.guest
	i.watch()
	stdout := i.pump(b.request.Command)
	b.send(input{kind: inSpawned, tree: b.guest})
	err = process.Started(ctx)
	if err == nil {
		err = group.LimitCPU()
	}
	if err != nil {
		i.stdoutEnded() // nobody reads what nobody has written
		return nil, b.explainStart(err)
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
	limits := c.limits.Group()
	if limits.Pids > 0 {
		limits.Pids += c.adapterTasks()
	}
	return limits
}

// adapterTasks bounds the tasks of what toolhost itself runs below the launcher:
// the command adapter has one thread, that of MCP servers some 13 (apart.Prepare).
func (c *Call) adapterTasks() int64 {
	switch {
	case c.request.Command != nil:
		return 1
	case c.request.Tool.Adapter:
		return 16
	}
	return 0
}

// adapted says whether the tool is what an adapter of toolhost's own will run.
func (c *Call) adapted() bool { return c.request.Command != nil || c.request.Tool.Adapter }

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
	s.tasks.Run("remove a group", func() {
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
	switch {
	case c.request.Command != nil:
		return "toolhost-adapter"
	case c.plan.Confined():
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
	return outcome.Refuse(api.StatusStartFailed, api.ReasonNotExecutable, fmt.Errorf("cannot execute %s: %w", cmp.Or(c.binary.path, "the command adapter"), why))
}
