package supervisor

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

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
	defer c.p.Policy.Close()
	if kept := c.line.take(c); kept != nil {
		c.adopt(kept)
		return
	}
	b := &birth{Call: c, held: c.s.hold(c.id)}
	conn, err := host.Connect(ctx, host.Options{
		Received: b.held.received, Decoded: b.held.decoded,
		RuntimeDir: c.s.runtime.path,
		SocketDir:  c.p.Plan.SocketDir(),
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
	over, err := b.s.starts.begin(ctx, b.p.Bounds.CPUWeight)
	if err != nil {
		return nil, err
	}
	defer over()
	group, err := b.s.groups.NewGroup(b.id, b.p.GroupLimits())
	if err != nil {
		return nil, err
	}
	pipes, err := openPipes(b.p.Request.Command != nil)
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
	stdout := i.pump(b.p.Request.Command)
	b.send(input{kind: inSpawned, tree: b.guest})
	err = process.Started(ctx)
	if err == nil {
		err = group.LimitCPU()
	}
	if err != nil {
		i.stdoutEnded() // nobody reads what nobody has written
		return nil, b.p.Explain(err)
	}
	i.executed.Store(true)
	return &host.Child{
		ID: strconv.Itoa(process.PID()), Stdout: stdout, SocketDir: process.SocketDir(),
		Dial: process.Dialer(), PeerUID: uint32(process.UID()), Gone: process.Gone(), Kill: func() { _ = i.kill() },
	}, nil
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
		Plan: c.p.Plan, Path: c.p.Path, Args: append([]string{c.p.ShownPath()}, c.p.Args()...),
		Env: c.p.Env(env), Dir: c.p.Dir,
		Stdio: [3]*os.File{c.s.null, pipes.stdout.child, pipes.stderr.child}, Extra: pipes.extra(),
		SocketDir: socketDir, Timer: c.p.Timer(), KillFile: group.KillFile, Into: group.Born,
	})
}
