package process

import (
	"context"
	"slices"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/supervisor/spec"
)

// Source is a stream that a process writes.
type Source int

// The streams. A command has its own stdout, apart from its adapter's; AllOutput is
// what ends with the last of them.
const (
	Stdout Source = iota
	Stderr
	CommandStdout
	AllOutput
)

// Listener is a call that a process serves. The process's own goroutines call it,
// and wait for it.
type Listener interface {
	// Output takes the next bytes. After an error they are read no more.
	Output(from Source, p []byte) error
	// OutputEnded comes after the last of it.
	OutputEnded(from Source)
	// InputFailed: what the command read is cut off, and looks whole to it.
	InputFailed(err error)
	// Late says that the call ends, so that its output is not held up.
	Late() bool
	// Exited is the end of the tool's own process.
	Exited(syscall.WaitStatus)
	// OutOfMemory says that the memory limit has ended processes.
	OutOfMemory()
	// AskNetwork has people asked whether the tool may reach a name; false if nobody is
	// there to ask for. Otherwise settle is called once, with the answer or with why there
	// is no yes, and returns before another call can have the process. The answer is
	// wanted until waits ends.
	AskNetwork(waits context.Context, name string, port uint16, settle func(a spec.Answer, why string)) bool
	// PassedNetwork says that the network has passed the limit of that name.
	PassedNetwork(limit string)
}

// audience are the calls that a process serves at present.
type audience struct {
	mu     sync.Mutex
	list   []Listener // replaced by each change
	closed bool
}

func (a *audience) present() []Listener {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list
}

// close lets nobody in any more. Those who are present are to hear of the end.
func (a *audience) close() []Listener {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.list
}

// Join has the process serve a call; false if the tool has ended.
func (p *Process) Join(l Listener) bool {
	a := &p.audience
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.list = append(slices.Clone(a.list), l)
	}
	return !a.closed
}

// Part ends that.
func (p *Process) Part(l Listener) {
	a := &p.audience
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(slices.Clone(a.list), func(one Listener) bool { return one == l })
}

// watch reports the tool's end and its memory limit.
func (p *Process) watch() {
	p.watchers.Go(func() {
		defer close(p.exitReported)
		status, ok := <-p.launcher.Exited()
		if !ok { // the launcher was killed first, and everything with it
			p.launcherLost.Store(!p.killed.Load())
			status = syscall.WaitStatus(syscall.SIGKILL)
		}
		present := p.audience.close()
		close(p.died)
		for _, l := range present {
			l.Exited(status)
		}
	})
	p.watchers.Go(func() {
		select {
		case <-p.group.OOM():
			present := p.audience.present()
			if len(present) == 0 { // between two calls: where one process was killed, the next is not to get the rest
				p.Spend()
				present = p.audience.present()
			}
			for _, l := range present {
				l.OutOfMemory()
			}
		case <-p.lifetime.Done():
		}
	})
}
