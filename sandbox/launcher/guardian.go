package main

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// guardian keeps the tree's promise: nothing outlives the host or the timer.
// Two threads that never return to Go's scheduler do the work: one waits for
// children, one for the host and the clock.
type guardian struct {
	opts     wire.Options
	deadline int64 // CLOCK_MONOTONIC nanoseconds; 0 is never
	tool     atomic.Int32
	begin    chan struct{} // closed when the set-up is over
	reaping  atomic.Bool
	buf      [wire.MaxMessageBytes]byte
	exited   [9]byte
}

func newGuardian(opts wire.Options) *guardian {
	g := &guardian{opts: opts, begin: make(chan struct{})}
	g.setTimer(opts.TimerNS)
	go g.reap() // its thread comes up beside the set-up
	return g
}

func (g *guardian) setTimer(left int64) {
	g.deadline = 0
	if left > 0 {
		g.deadline = monotonic() + left
	}
}

// processors, set by the zygote as GOMAXPROCS, leaves one for each of the two
// threads that stay in the kernel and one spare, so that Go's scheduler never
// wants another thread.
const processors = 3

// startThreads has every thread at its place before the tool: none can be had
// once the tool has filled its pids limit. Go's own threads are then idle and
// reused.
func (g *guardian) startThreads() {
	close(g.begin)
	for !g.reaping.Load() {
		runtime.Gosched()
	}
}

// park holds a thread in the kernel for good.
func park() {
	for {
		syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// reap waits for children for ever and reports the tool's raw wait status.
func (g *guardian) reap() {
	runtime.LockOSThread()
	<-g.begin // until then its thread takes part in what all threads do
	blockSignals()
	g.reaping.Store(true)
	for g.tool.Load() == 0 {
		pause(50_000)
	}
	var status uint32
	for {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), unix.WALL, 0, 0, 0)
		switch {
		case errno == 0 && int32(pid) == g.tool.Load():
			g.report(uint64(status))
		case errno == unix.ECHILD:
			// Nothing left to wait for, and nothing can come: only children
			// and orphans of children end up here.
			park()
		}
	}
}

// report sends the wait status without allocating.
func (g *guardian) report(status uint64) {
	g.exited[0] = wire.KindExited
	for i := range 8 {
		g.exited[1+i] = byte(status >> (8 * i))
	}
	syscall.RawSyscall6(unix.SYS_SENDTO, wire.ControlFD, uintptr(unsafe.Pointer(&g.exited[0])), uintptr(len(g.exited)), unix.MSG_NOSIGNAL, 0, 0)
}

// run announces the tool and then watches the host and the clock until one of
// them ends the tree.
func (g *guardian) run(tool int) {
	ignoreSignals()
	blockSignals()
	g.closeToolFiles()
	_ = unix.Sendto(wire.ControlFD, []byte{wire.KindStarted}, unix.MSG_NOSIGNAL, nil)
	g.tool.Store(int32(tool))
	for g.watch() {
	}
	g.end()
}

// closeToolFiles leaves the tool the only holder of its pipes, so that the
// readers at their other ends see when it closes them.
func (g *guardian) closeToolFiles() {
	for fd := range 3 {
		_ = unix.Close(fd)
	}
	for i := range int(g.opts.Extra) {
		_ = unix.Close(g.opts.ExtraFD() + i)
	}
}

// watch waits for one message or the deadline; false means end the tree.
func (g *guardian) watch() bool {
	fds := [1]unix.PollFd{{Fd: wire.ControlFD, Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if g.deadline != 0 {
		left := max(g.deadline-monotonic(), 0)
		timeout = &unix.Timespec{Sec: left / 1e9, Nsec: left % 1e9}
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	if errno == unix.EINTR {
		return true
	}
	if errno != 0 || n == 0 {
		return false
	}
	return g.read()
}

func (g *guardian) read() bool {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, wire.ControlFD, uintptr(unsafe.Pointer(&g.buf[0])), uintptr(len(g.buf)), unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EINTR || errno == unix.EAGAIN {
		return true
	}
	if errno != 0 || n == 0 {
		return false
	}
	if left, ok := wire.ParseNumber(g.buf[:n]); ok && g.buf[0] == wire.KindTimer {
		g.setTimer(int64(left))
	}
	return true
}

// end takes the tree down: as PID 1 by ending itself, which makes the kernel
// kill the namespace; otherwise through the group's cgroup.kill. Signalling
// every process (kill -1) would reach beyond the tree and is never done.
func (g *guardian) end() {
	if g.opts.Kill {
		one := [1]byte{'1'}
		syscall.RawSyscall6(unix.SYS_WRITE, uintptr(g.opts.KillFD()), uintptr(unsafe.Pointer(&one[0])), 1, 0, 0, 0)
	}
	os.Exit(0)
}

func monotonic() int64 {
	var ts unix.Timespec
	syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0)
	return ts.Nano()
}

func pause(ns int64) {
	ts := unix.Timespec{Nsec: ns}
	syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
