package call

import (
	"context"
	"os"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Tree is a call's processes as its owner sees them: a guest of a process, or
// what a test of the owner plays. Where other calls have the same processes,
// usage is this call's own.
type Tree interface {
	// Terminate sends SIGTERM to every process but the launcher, and SIGCONT so
	// that stopped ones see it. pids are those that were there.
	Terminate() (pids []int, err error)
	// Kill ends every process. It may be called again, and from any goroutine.
	Kill() error
	// Boost helps what is being killed to die on a busy machine.
	Boost() error
	// Processes are those that live, but the launcher.
	Processes() ([]int, error)
	// Ended waits until no process is left and their end was reported, or until
	// ctx ends.
	Ended(ctx context.Context) error
	// GiveUp is for processes that SIGKILL does not end: how many there are.
	GiveUp() (survivors int)

	CPU() (time.Duration, error)
	Usage() (cgroup.Usage, error)
	// Current may be called from any goroutine.
	Current() (cgroup.Current, error)

	Executed() time.Time  // when the tool's program began; zero before
	Killed() bool         // by the host
	LauncherLost() bool   // the launcher has ended, and not by the host
	EndedByAnother() bool // another call has ended it
	Instance() string     // as in a result
	UID() int

	// SetTimer has the launcher end the processes after this time at the
	// earliest; 0 is never.
	SetTimer(left time.Duration) error
	// Share lets other calls have the processes that are to be kept, with the lock
	// of the tool's data if the call has that.
	Share(locked bool)
	// Wear has the processes serve no call but those that they serve.
	Wear()
	// MayLiveOn is false if the processes are to end with the call.
	MayLiveOn() bool
	// OutputTaken are closed when what was written so far has been read.
	OutputTaken() []<-chan struct{}
	Workspace() *os.File

	// Release leaves the processes alive for other calls.
	Release()
	// Leave is for processes that are gone or, with survivors, were given up. freed
	// is closed when nothing of them is left.
	Leave(survivors bool) (freed <-chan struct{})
}

// Peer is the tool at the other end of the connection.
type Peer interface {
	Describe(context.Context) (*pluginv1.DescribeResponse, error)
	// Call hands each event on with the time when its decoding began.
	Call(ctx context.Context, request *pluginv1.CallRequest, handle func(*pluginv1.CallEvent, time.Time)) error
	Cancel(ctx context.Context, callID, reason string) error
	Acknowledge(ctx context.Context, callID string, seq uint64) error
	Answer(context.Context, *pluginv1.AnswerRequest) error
}
