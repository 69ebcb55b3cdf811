package supervisor

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/plugin/host"
)

// guest is a call at an instance: the tree of its owner.
type guest struct {
	at   *instance
	call *Call
	// conn is the starter's, and becomes the instance's once it is connected; nil
	// for an instance that had served another call before.
	conn *host.Conn
	// before is what the instance had used when the call came.
	before cgroup.Usage
	reused bool
}

var _ tree = (*guest)(nil)

func (g *guest) terminate() ([]int, error) {
	g.at.doom(g.call)
	return g.at.group.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, g.at.isLauncher)
}

func (g *guest) kill() error {
	g.at.doom(g.call)
	return g.at.kill()
}

func (g *guest) hurry() error { return g.at.group.Hurry() }

func (g *guest) processes() ([]int, error) {
	pids, err := g.at.group.Processes()
	return slices.DeleteFunc(pids, g.at.isLauncher), err
}

func (g *guest) ended(ctx context.Context) error {
	for _, over := range []<-chan struct{}{g.at.process.Gone(), g.at.exitTold} {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.at.group.WaitEmpty(ctx)
}

func (g *guest) giveUp() (survivors int) {
	g.at.group.Calm()
	pids, err := g.at.group.Processes()
	if err == nil && len(pids) == 0 && g.at.process.HasEnded() {
		return 0 // only the starter is late
	}
	return max(len(pids), 1)
}

func (g *guest) cpu() (time.Duration, error) {
	used, err := g.at.group.CPU()
	return used - g.cpuBefore(), err
}

func (g *guest) cpuBefore() time.Duration { return g.before.CPUUser + g.before.CPUSystem }

func (g *guest) usage() (cgroup.Usage, error) {
	usage, err := g.at.group.Usage()
	if g.reused {
		usage = usage.Since(g.before)
	}
	return usage, err
}

func (g *guest) current() (cgroup.Current, error) {
	now, err := g.at.group.Current()
	now.CPU = max(now.CPU-g.cpuBefore(), 0)
	return now, err
}

func (g *guest) seen() sighting {
	i := g.at
	return sighting{
		executed: i.executed.Load(), killed: i.killed.Load(), launcherLost: i.launcherLost.Load(),
		doomed: i.doomedByOther(g.call), reused: g.reused, uid: i.process.UID(),
	}
}

func (g *guest) setTimer(left time.Duration) error { return g.at.hold(g.call, left) }

func (g *guest) connected() {
	if !g.reused {
		g.at.conn = g.conn
		g.at.limitTasks(g.call)
	}
}

func (g *guest) share() {
	if !g.reused {
		g.at.line.offer(g.at, g.call.p.Request.Lock.File != "")
	}
}

func (g *guest) mayLiveOn() bool { return g.at.mayLiveOn() }

func (g *guest) outputTaken() []<-chan struct{} {
	return []<-chan struct{}{g.at.stdout.empty(), g.at.stderr.empty()}
}

func (g *guest) workspace() *os.File { return g.at.process.Workspace() }

func (g *guest) release() {
	if !g.at.release(g.call) && g.at.leave(g.call) {
		g.at.bury()
	}
}

func (g *guest) leave(survivors bool) <-chan struct{} {
	switch i := g.at; {
	case !i.leave(g.call):
	case survivors:
		i.line.forget(i)
		i.tasks.Run("free what does not die", i.freeLater)
	default:
		i.line.forget(i)
		i.free()
	}
	return g.at.freed
}
