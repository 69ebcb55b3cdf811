package process

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Maker is what a supervisor makes processes with.
type Maker struct {
	Groups *cgroup.Root
	Host   *sandbox.Host
	// RuntimeDir holds the folders of sockets.
	RuntimeDir string
	Intake     Intake
	Starts     Starts
	Spares     *Spares
	// Load is that of the gate for calls.
	Load   func() (running, waiting int)
	Logger hclog.Logger
	Tasks  *tasks.Tasks
	// Connect is for calls with network grants.
	Connect Connector
	// Closing ends with the supervisor.
	Closing context.Context
}

// Progress is what the maker of a process hears of its start.
type Progress struct {
	// Launching comes before a process may exist, Spawned when one does: from then on
	// it is the caller's to end and to free, whatever Start returns.
	Launching func()
	Spawned   func(*Process)
}

// birth is the start of one process. Only the goroutine that starts it uses it.
type birth struct {
	*Maker
	call     *prepare.Prepared
	warm     *Warm // nil for nothing
	log      hclog.Logger
	listener Listener
	on       Progress
	held     *held
	process  *Process                    // once there is one
	opened   func(context.Context) error // nil without network grants
}

// Start brings the tool of a call up until it answers, with the call for its first
// listener. warm is nil for nothing.
func (m *Maker) Start(ctx context.Context, call *prepare.Prepared, warm *Warm, log hclog.Logger, l Listener, on Progress) (*Process, error) {
	b := &birth{Maker: m, call: call, warm: warm, log: log, listener: l, on: on, held: m.Intake.hold(call.ID)}
	conn, err := host.Connect(ctx, host.Options{
		Received: b.held.received, Decoded: b.held.decoded,
		RuntimeDir: m.RuntimeDir, SocketDir: call.Plan.SocketDir(),
		Stdout: writerFunc(func(p []byte) (int, error) { return b.process.passStdout(p) }),
		Start: func(env []string, dir string) (*host.Child, error) {
			child, err := b.spawn(ctx, env, dir)
			return child, outcome.HostFailure(err)
		},
	})
	if err == nil {
		if err = b.served(ctx); err != nil {
			m.Tasks.Run("close a connection", conn.Close)
		}
	}
	if err != nil {
		b.held.release()
		return nil, err
	}
	if dir := b.process.launcher.SocketDir(); dir != nil {
		_ = dir.Close() // nobody connects again: a call that waits has one descriptor less
	}
	if b.process.use(conn) {
		b.limitTasks()
	} else {
		m.Tasks.Run("close a connection", conn.Close)
	}
	return b.process, nil
}

// spawn has a process made, and waits until the tool runs. What an error leaves behind
// is removed here, unless processes exist: those are the caller's to kill.
func (b *birth) spawn(ctx context.Context, env []string, socketDir string) (*host.Child, error) {
	p, over, err := b.born(ctx, env, socketDir)
	if err != nil {
		return nil, b.call.Explain(err)
	}
	defer over()
	b.process, p.held = p, b.held
	p.Join(b.listener)
	p.watch()
	stdout := p.pump(b.call.Request.Command)
	b.on.Spawned(p)
	err = b.connect(ctx)
	if err == nil {
		err = p.launcher.Started(ctx)
	}
	if err == nil {
		p.executed.Store(new(time.Now()))
		err = p.group.LimitCPU()
	}
	if err != nil {
		p.stdoutEnded() // nobody reads what nobody has written
		return nil, b.call.Explain(err)
	}
	return &host.Child{
		Stdout: stdout, SocketDir: p.launcher.SocketDir(),
		Dial: p.launcher.Dialer(), PeerUID: uint32(p.launcher.UID()), Kill: func() { _ = p.Kill() },
	}, nil
}

// born is a process that is made now, or has waited for the call. over gives back its
// turn among starts.
func (b *birth) born(ctx context.Context, env []string, socketDir string) (p *Process, over func(), err error) {
	o := orderOf(b.call, b.call.ID, env, socketDir)
	if b.warm == nil {
		b.warm = b.Spares.take(b.call)
	}
	if w := b.warm; w != nil {
		has, err := w.take(ctx)
		if err != nil && (!w.waits || ctx.Err() != nil) {
			return nil, nil, err
		}
		if p := has.process; p != nil {
			b.on.Launching()
			if p.awake(o.spec) {
				return p, func() {}, nil
			}
			b.discard(has)
			o.name, has.group = aheadName(b.call), nil
		}
		o.group = has.group
	}
	return b.make(ctx, o, b.on.Launching)
}

// awake says whether a process that has waited goes on with the call's program and time: its
// timer, if it has begun, has run since before the call did. Of a sandbox that was given its
// program nobody knows more, even if it has ended: that may have run.
func (p *Process) awake(s sandbox.Spec) bool {
	if p.waits {
		return p.begin(s) == nil
	}
	return (s.Timer == 0 || p.launcher.SetTimer(s.Timer) == nil) && !p.launcher.HasEnded()
}

// begin gives a sandbox that waits its program.
func (p *Process) begin(s sandbox.Spec) error {
	p.group.Rise()
	err := p.launcher.Begin(s)
	p.waits = err != nil
	return err
}

// order is what a process is made by, whatever becomes of its call meanwhile.
type order struct {
	groupOrder
	group   *cgroup.Group // nil for one that is to be made
	pool    spec.Pool
	weight  int64
	command bool
	spec    sandbox.Spec // without what is made with the process
}

// groupOrder is what the group of a process is made by.
type groupOrder struct {
	name   string
	share  cgroup.Share
	limits cgroup.Limits
}

func groupOf(c *prepare.Prepared, name string) groupOrder {
	return groupOrder{name, c.Request.Share.Group(), c.GroupLimits()}
}

func orderOf(c *prepare.Prepared, group string, env []string, socketDir string) order {
	return order{
		groupOrder: groupOf(c, group),
		pool:       c.Request.Pool, weight: c.Bounds.CPUWeight, command: c.Request.Command != nil,
		spec: sandbox.Spec{
			Plan: c.Plan, Path: c.Path, Args: append([]string{c.ShownPath()}, c.Args()...),
			Env: c.Env(env), Dir: c.Dir,
			SocketDir: socketDir, Timer: c.Timer(c.Timeout.Timeout), Movable: c.Outlasts(), Lease: c.Request.Lease,
		},
	}
}

// make makes all of a process in its turn, or nothing. launching comes before there may be
// one. Sandboxes that wait give way to it.
func (m *Maker) make(ctx context.Context, o order, launching func()) (p *Process, over func(), err error) {
	p, over, err = m.tryMake(ctx, o, launching)
	if err == nil || o.spec.Waits || errors.Is(err, sandbox.ErrUncertain) || !m.Spares.giveWay(ctx) {
		return p, over, err
	}
	o.name, o.group = "again-"+rand.Text(), nil
	return m.tryMake(ctx, o, launching)
}

func (m *Maker) tryMake(ctx context.Context, o order, launching func()) (_ *Process, over func(), err error) {
	var undo []func()
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			undo[i]()
		}
	}()
	if o.group != nil {
		undo = append(undo, func() { m.Discard(o.group) })
	}
	if over, err = m.Starts.begin(ctx, o.pool, o.weight); err != nil {
		return nil, nil, err
	}
	undo = append(undo, over)
	if o.group == nil {
		if o.group, err = m.group(o.groupOrder); err != nil {
			return nil, nil, err
		}
		undo = append(undo, func() { m.Discard(o.group) })
	}
	pipes, err := openPipes(o.command)
	if err != nil {
		return nil, nil, err
	}
	defer pipes.closeChildEnds()
	undo = append(undo, pipes.closeHostEnds)
	launching()
	launcher, err := m.Host.Start(ctx, o.launch(pipes))
	if err != nil {
		return nil, nil, err
	}
	o.group.Lead(launcher.PID())
	p := m.newProcess(o.group, launcher, pipes)
	p.waits = o.spec.Waits
	return p, over, nil
}

func (m *Maker) group(o groupOrder) (*cgroup.Group, error) {
	return m.Groups.NewGroupIn(o.share, o.name, o.limits)
}

func (o order) launch(p *pipes) sandbox.Spec {
	s := o.spec
	s.Stdio, s.Extra = [3]*os.File{p.stdin, p.stdout.child, p.stderr.child}, p.extra()
	s.KillFile, s.Into = o.group.KillFile, o.group.Fork
	return s
}

const (
	// launcherTasks is what the launcher is once the tool runs: one thread.
	launcherTasks = 1
	// spareTasks are left to toolhost's own programs when their number is known, for
	// Go's runtime may want another thread, and the launcher has one for a while.
	spareTasks = 2
)

// limitTasks makes the pids limit exact, now that everything of toolhost's own
// is there: of what an adapter runs not even the first process is.
func (b *birth) limitTasks() {
	limit, p := b.call.TaskLimit(), b.process
	if limit == 0 {
		return
	}
	own := int64(launcherTasks)
	if b.call.Adapted() {
		var err error
		if own, err = p.group.Tasks(); err != nil {
			return // it stays as it was: a little too high
		}
	}
	if err := p.group.LimitTasks(limit + own + spareTasks); err != nil {
		b.log.Warn("cannot make the limit of processes exact", "error", err)
	}
}

const removeEvery = time.Second

// Discard removes a group in which a birth may still be under way: that ends by
// itself, somewhat later.
func (m *Maker) Discard(group *cgroup.Group) {
	ctx, cancel := context.WithTimeout(context.Background(), budget.AnswerMargin)
	defer cancel()
	err := errors.Join(group.Kill(), group.WaitEmpty(ctx), group.Remove())
	if err == nil {
		return
	}
	m.Logger.Warn("cannot remove the group of a start that was given up: trying again", "group", group.Path(), "error", err)
	m.Tasks.Run("remove a group", func() {
		for group.Remove() != nil {
			select {
			case <-m.Closing.Done():
				return // the next sweep takes it
			case <-time.After(removeEvery):
			}
		}
	})
}
