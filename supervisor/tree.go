package supervisor

import (
	"context"
	"os"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// tree is a call's processes as its owner sees them: a guest of an instance, or
// what a test of the owner plays. Where other calls have the same processes,
// usage is this call's own.
type tree interface {
	// terminate sends SIGTERM to every process but the launcher, and SIGCONT so
	// that stopped ones see it. pids are those that were there.
	terminate() (pids []int, err error)
	// kill ends every process. It may be called again, and from any goroutine.
	kill() error
	// hurry helps what is being killed to die on a busy machine.
	hurry() error
	// processes are those that live, but the launcher.
	processes() ([]int, error)
	// ended waits until no process is left and their end was reported, or until
	// ctx ends.
	ended(ctx context.Context) error
	// giveUp is for processes that SIGKILL does not end: how many there are.
	giveUp() (survivors int)

	cpu() (time.Duration, error)
	usage() (cgroup.Usage, error)
	// current may be called from any goroutine.
	current() (cgroup.Current, error)
	seen() sighting

	// setTimer has the launcher end the processes after this time at the
	// earliest; 0 is never.
	setTimer(left time.Duration) error
	// connected says that the tool has answered.
	connected()
	// share lets other calls have the processes that are to be kept.
	share()
	// mayLiveOn is false if the processes are to end with the call.
	mayLiveOn() bool
	// outputTaken are closed when what was written so far has been read.
	outputTaken() []<-chan struct{}
	workspace() *os.File

	// release leaves the processes alive for other calls.
	release()
	// leave is for processes that are gone or, with survivors, were given up. freed
	// is closed when nothing of them is left.
	leave(survivors bool) (freed <-chan struct{})
}

// sighting is what was seen of a tree.
type sighting struct {
	executed     bool // the tool's program has begun
	killed       bool // by the host
	launcherLost bool // the launcher has ended, and not by the host
	doomed       bool // another call has ended it
	reused       bool // it has served other calls
	uid          int
}

// peer is the tool at the other end of the connection.
type peer interface {
	Describe(context.Context) (*pluginv1.DescribeResponse, error)
	Call(ctx context.Context, request *pluginv1.CallRequest, handle func(*pluginv1.CallEvent)) error
	Cancel(ctx context.Context, callID, reason string) error
	Acknowledge(ctx context.Context, callID string, seq uint64) error
	Answer(context.Context, *pluginv1.AnswerRequest) error
}
