package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// SetupError is a launcher's own report that a tool could not be started. It
// is never the tool's doing.
type SetupError struct {
	// Step is what the launcher was about to do; Path the executable's, if it
	// is the step's object.
	Step string
	Err  error
}

func (e *SetupError) Error() string { return fmt.Sprintf("cannot %s: %v", e.Step, e.Err) }
func (e *SetupError) Unwrap() error { return e.Err }

// ErrDiedAtBirth: the launcher vanished without a word, as it does when its
// group was killed before it could begin.
var ErrDiedAtBirth = errors.New("the launcher died before it could report")

// Process is a started tree. Its methods may be called from any goroutine.
type Process struct {
	child   *os.Process
	control *net.UnixConn

	ready   chan struct{} // closed once started or failed
	failure error         // written before ready is closed
	dir     *os.File      // written before ready is closed
	exited  chan syscall.WaitStatus
	gone    chan struct{}
	readers sync.WaitGroup
}

func newProcess(child *os.Process, control *net.UnixConn) *Process {
	p := &Process{
		child: child, control: control,
		ready: make(chan struct{}), exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{}),
	}
	p.readers.Go(p.wait)
	p.readers.Go(p.read)
	return p
}

// PID is the launcher's process id. Whoever signals the tree's members leaves
// this one out.
func (p *Process) PID() int { return p.child.Pid }

// Gone is closed when the launcher has been reaped. Where it was PID 1 of a
// namespace, the kernel has by then ended and reaped every process in it
// (pid_namespaces(7)).
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Exited receives the tool's own raw wait status, as the launcher saw it: it
// cannot be forged by an exit code. It is closed afterwards, or without one
// if the launcher was killed first, and the tool with it.
func (p *Process) Exited() <-chan syscall.WaitStatus { return p.exited }

// Started waits until the tool's executable runs. An error is a *SetupError,
// ErrDiedAtBirth or ctx's.
func (p *Process) Started(ctx context.Context) error {
	select {
	case <-p.ready:
		return p.failure
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// SocketDir is the folder in which the tool makes its socket, as an O_PATH
// descriptor; nil without one. It is valid after Started, until Release.
func (p *Process) SocketDir() *os.File { return p.dir }

// SetTimer moves the launcher's own timer to left from now. It never blocks:
// a launcher with a full socket has more urgent trouble.
func (p *Process) SetTimer(left time.Duration) error {
	message := wire.AppendNumber(nil, wire.KindTimer, uint64(max(left, 1)))
	if _, err := p.control.Write(message); err != nil {
		return fmt.Errorf("cannot move the launcher's timer: %w", err)
	}
	return nil
}

// Kill ends the launcher, and with it its namespace. It may be called again.
func (p *Process) Kill() { _ = p.child.Kill() }

// Release frees what the host holds of a tree that is gone. It waits for the
// process's goroutines, so call it only after Gone, or after Kill.
func (p *Process) Release() {
	<-p.gone
	_ = p.control.Close()
	p.readers.Wait()
	if p.dir != nil {
		_ = p.dir.Close()
	}
}

// Abandon gives up a tree that cannot be killed: its goroutine stays until the
// kernel lets go of it, nothing else does.
func (p *Process) Abandon() {
	_ = p.control.Close()
	go p.Release()
}

func (p *Process) wait() {
	_, _ = p.child.Wait()
	close(p.gone)
}

// read takes the launcher's messages until its end of the socket is closed.
func (p *Process) read() {
	buf, oob := make([]byte, wire.MaxMessageBytes), make([]byte, unix.CmsgSpace(4))
	settled := false
	settle := func(err error) {
		if !settled {
			settled, p.failure = true, err
			close(p.ready)
		}
	}
	defer close(p.exited)
	defer settle(ErrDiedAtBirth)
	for {
		n, oobn, _, _, err := p.control.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			return
		}
		p.handle(buf[:n], oob[:oobn], settle)
	}
}

func (p *Process) handle(message, oob []byte, settle func(error)) {
	switch message[0] {
	case wire.KindReady:
		p.dir = receivedFile(oob)
	case wire.KindStarted:
		settle(nil)
	case wire.KindFailed:
		if f, ok := wire.ParseFailure(message); ok {
			settle(&SetupError{Step: f.Step, Err: syscall.Errno(f.Errno)})
		}
	case wire.KindExited:
		if status, ok := wire.ParseNumber(message); ok {
			select {
			case p.exited <- syscall.WaitStatus(status):
			default: // a launcher reports once
			}
		}
	}
}

func receivedFile(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "socket-dir")
}

// SignalName is a signal's name as signal(7) spells it, such as SIGTERM.
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// SignalNumber is the inverse of SignalName; 0 if there is none of that name.
func SignalNumber(name string) syscall.Signal {
	if number, ok := strings.CutPrefix(name, "signal "); ok { // a real-time signal
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= 64 {
			return syscall.Signal(n)
		}
	}
	return unix.SignalNum(name)
}
