package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Process is a started process tree. Its methods are safe for concurrent use.
type Process struct {
	control *net.UnixConn
	who     identity
	host    *Host
	zygote  *zygote // that it was born of, in use until leave
	leave   func()
	// folders are where the launcher's descriptors go, in their order.
	folders []**os.File

	born    chan struct{} // closed once pid and pidfd are set, or failed
	ready   chan struct{} // closed once the tool runs, or failed
	failure error         // written before born and ready are closed
	begun   bool          // the launcher is about to start the tool; read after born is closed
	given   atomic.Bool   // a sandbox that waits may have its program
	waits   bool          // it starts none before Begin
	built   chan struct{} // closed once the sandbox is made, or nothing will be
	pid     int
	pidfd   *os.File
	raw     syscall.RawConn // pidfd's
	// socketDir and workspace are written before ready is closed.
	socketDir, workspace *os.File
	sockets              atomic.Pointer[Sockets]
	arranged             chan struct{} // closed once sockets is set; never without network grants

	exited  chan syscall.WaitStatus
	gone    chan struct{}
	readers sync.WaitGroup
	timer   timer

	released sync.Once
}

func newProcess(control *net.UnixConn, who identity, z *zygote, leave func(), spec Spec) *Process {
	p := &Process{
		control: control, who: who, zygote: z, leave: leave, born: make(chan struct{}), ready: make(chan struct{}), arranged: make(chan struct{}),
		exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{}), waits: spec.Waits, built: make(chan struct{}),
	}
	if spec.socketDir() != "" {
		p.folders = append(p.folders, &p.socketDir)
	}
	p.folders = append(p.folders, &p.workspace)
	p.readers.Go(p.read)
	return p
}

// awaitBirth waits for the zygote's answer.
func (p *Process) awaitBirth(ctx context.Context) error {
	slow := time.NewTicker(pulseAfter)
	defer slow.Stop()
	for {
		select {
		case <-p.born:
			if p.pidfd == nil {
				return p.failure
			}
			return nil
		case <-slow.C:
			p.zygote.pulse.ask()
		case <-p.zygote.pulse.lost:
			return p.orphaned(ctx)
		case <-ctx.Done():
			p.zygote.pulse.ask() // the next call is not to find out anew
			return fmt.Errorf("%w; %w", context.Cause(ctx), ErrUncertain)
		}
	}
}

// orphanTime is how long the end of the control socket, which nobody holds any
// more, may be late where its zygote is lost.
const orphanTime = time.Second

// orphaned is the end of a birth whose zygote is lost. It is certain that
// nothing began where nobody holds the other end of the control socket.
func (p *Process) orphaned(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTime)
	defer cancel()
	select {
	case <-p.born:
	case <-ctx.Done():
	}
	err := fmt.Errorf("cannot start the launcher: %w", p.zygote.pulse.err)
	switch {
	case p.stillborn():
		return err
	case closed(p.born) && p.pidfd != nil:
		return nil
	}
	return fmt.Errorf("%w; %w", err, ErrUncertain)
}

// stillborn says whether it is certain that no tool was or will be started.
func (p *Process) stillborn() bool { return closed(p.born) && p.pidfd == nil && !p.begun }

// PID returns the launcher's process ID. Signals to the members of the tree must
// skip it.
func (p *Process) PID() int { return p.pid }

// UID returns the tool's user ID on the host.
func (p *Process) UID() int { return p.who.outside }

// Gone returns a channel that is closed when the launcher has ended. If it was
// PID 1 of a namespace, the kernel has then killed and reaped every process in
// it (pid_namespaces(7)).
func (p *Process) Gone() <-chan struct{} { return p.gone }

// HasEnded reports whether the launcher has ended. Gone is closed later, on a busy
// machine much later.
func (p *Process) HasEnded() bool {
	select {
	case <-p.gone:
		return true
	case <-p.born:
	default:
		return false
	}
	over := false
	return p.raw != nil && p.raw.Control(func(fd uintptr) { over = ended(int(fd), 0) }) == nil && over
}

// Exited returns a channel that receives the raw wait status of the tool's main
// process, as the launcher saw it, so that an exit code cannot imitate a signal. The
// channel is closed afterwards, or without a value if the launcher was killed first.
func (p *Process) Exited() <-chan syscall.WaitStatus { return p.exited }

// Started waits until the tool's executable runs. The error is a *SetupError,
// ErrDiedAtBirth, or wraps ctx's cause and ErrUncertain.
func (p *Process) Started(ctx context.Context) error {
	select {
	case <-p.ready:
		return p.failure
	case <-ctx.Done():
	}
	select {
	case <-p.ready:
		return p.failure
	default: // the tool may begin in this very moment
		return fmt.Errorf("%w; %w", context.Cause(ctx), ErrUncertain)
	}
}

// Begin starts the program of a process that was started with Spec.Waits. It may be called
// once. It uses spec's Path, Args, Env, Dir, and Timer, which counts from now, and ignores the
// other fields. It does not wait; Started does. An error means that the program has not
// started, and never will.
func (p *Process) Begin(spec Spec) error {
	if p.HasEnded() { // others may hold its end of the socket a moment longer
		return fmt.Errorf("cannot give a sandbox that waits its program: %w", ErrGone)
	}
	told, err := textFile("toolhost-tool", spec.tool().Encode())
	if err != nil {
		return err
	}
	defer told.Close()
	p.given.Store(true)
	if _, _, err := p.control.WriteMsgUnix([]byte{wire.KindBegin}, unix.UnixRights(int(told.Fd())), nil); err != nil {
		p.given.Store(false)
		return fmt.Errorf("cannot give a sandbox that waits its program: %w", err)
	}
	return nil
}

// SocketDir returns the folder of the tool's socket as an O_PATH descriptor, or nil. It
// is valid after Started, until Release.
func (p *Process) SocketDir() *os.File { return p.socketDir }

// Workspace returns the call's workspace as an O_PATH descriptor, or nil if there is no
// workspace or it is persistent. It is valid after Started, until Release. Its content
// is untrusted: package sandbox/export copies files out of it.
func (p *Process) Workspace() *os.File { return p.workspace }

// Kill kills the launcher, and with it the processes of its PID namespace. It may be
// called more than once; it is not an error if the launcher has ended.
func (p *Process) Kill() error {
	var err error
	sent := p.raw.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if sent != nil || err == unix.ESRCH { // the pidfd is closed after the end only
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot kill the launcher %d: %w", p.pid, err)
	}
	return nil
}

// Release frees the host's resources for a tree that is gone, including its user ID.
// It waits for the process's goroutines, so call it only after Gone, or after Kill.
// Later calls have no effect.
func (p *Process) Release() { p.released.Do(p.free) }

func (p *Process) free() {
	<-p.gone
	_ = p.control.Close()
	p.timer.end()
	p.readers.Wait()
	p.closeSockets()
	for _, file := range []*os.File{p.pidfd, p.socketDir, p.workspace} {
		if file != nil {
			_ = file.Close()
		}
	}
	p.leave()
	if p.pidfd == nil {
		p.who.retire()
		return
	}
	p.who.release()
}

// Abandon gives up a tree that cannot be killed. Its goroutine and user ID stay
// allocated until the kernel ends it; all else is freed. A process that is still being
// born finds its control socket closed, and ends.
func (p *Process) Abandon() {
	_ = p.control.Close()
	go p.Release()
}

// wait closes gone when the launcher has ended: its pidfd is then readable
// (pidfd_open(2)).
func (p *Process) wait() {
	defer close(p.gone)
	err := p.raw.Read(func(fd uintptr) bool { return ended(int(fd), 0) })
	if err != nil { // it could not be watched with the others
		_ = p.raw.Control(func(fd uintptr) {
			for !ended(int(fd), -1) {
			}
		})
	}
}

func ended(pidfd, timeout int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, timeout)
	return n > 0 || err != nil && err != unix.EINTR
}

// maxReceived bounds the descriptors of one message.
const maxReceived = wire.SocketFiles + wire.MaxSockets

// read takes the messages about the call until the other end of the socket is
// closed.
func (p *Process) read() {
	buf, oob := make([]byte, wire.MaxMessageBytes), make([]byte, unix.CmsgSpace(maxReceived*4))
	defer close(p.exited)
	for {
		n, oobn, flags, err := seqpacket.Read(p.control, buf, oob)
		if err != nil || n == 0 {
			break
		}
		p.handle(buf[:n], receivedFiles(oob[:oobn], buf[0] == wire.KindBorn))
		if flags&unix.MSG_CTRUNC != 0 { // no descriptor was left for what came: its call is ended
			p.settle(fmt.Errorf("%w; %w", &SetupError{Step: wire.StepReceive, Err: unix.EMFILE}, ErrUncertain))
			_ = p.control.Close()
			break
		}
	}
	p.settle(p.diedAtBirth())
	p.buildOver()
	if p.pidfd == nil { // and nothing will be born: nobody else has the socket
		close(p.born)
		close(p.gone)
	}
}

// diedAtBirth is the end of a launcher that has not said whether the tool runs.
func (p *Process) diedAtBirth() error {
	if p.begun || p.given.Load() {
		return fmt.Errorf("%w; %w", ErrDiedAtBirth, ErrUncertain)
	}
	return ErrDiedAtBirth
}

func (p *Process) handle(message []byte, files []*os.File) {
	switch message[0] {
	case wire.KindBorn:
		p.onBorn(message, files)
	case wire.KindReady:
		p.begun = !p.waits
		p.buildOver()
		for i, to := range p.folders {
			if i < len(files) && *to == nil {
				*to, files[i] = files[i], nil
			}
		}
	case wire.KindSockets:
		p.onSockets(files)
	case wire.KindStarted:
		p.settle(nil)
	case wire.KindFailed:
		if f, ok := wire.ParseFailure(message); ok {
			p.settle(&SetupError{Step: f.Step, Err: syscall.Errno(f.Errno)})
		}
	case wire.KindExited:
		p.onExited(message)
	}
	for _, file := range files {
		if file != nil {
			_ = file.Close()
		}
	}
}

func (p *Process) onBorn(message []byte, files []*os.File) {
	pid, ok := wire.ParseNumber(message)
	if !ok || len(files) == 0 || p.pidfd != nil {
		return
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return
	}
	p.pid, p.pidfd, p.raw, files[0] = int(pid), files[0], raw, nil
	p.readers.Go(p.wait)
	close(p.born)
}

func (p *Process) onExited(message []byte) {
	status, ok := wire.ParseNumber(message)
	if !ok {
		return
	}
	select {
	case p.exited <- syscall.WaitStatus(status):
	default: // a launcher reports once
	}
}

// settle ends the wait for the tool's start, once.
func (p *Process) settle(err error) {
	if !closed(p.ready) {
		p.failure = err
		close(p.ready)
	}
}

func (p *Process) buildOver() {
	if !closed(p.built) {
		close(p.built)
	}
}

// Built returns a channel that is closed once the sandbox is made, except for the
// launcher's own confinement, or the launcher has ended.
func (p *Process) Built() <-chan struct{} { return p.built }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// receivedFiles are closed at exec: package net asks for that. wait has them made so that
// they can be waited for, as a pidfd.
func receivedFiles(oob []byte, wait bool) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil
	}
	for _, fd := range fds {
		if wait {
			_ = unix.SetNonblock(fd, true)
		}
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	return files
}
