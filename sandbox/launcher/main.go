// Command launcher is PID 1 of every call's PID namespace. It prepares the
// tool's surroundings, starts the tool, reaps what is orphaned, and ends the
// whole tree when its host is gone or its own timer runs out.
//
// It is built for a hostile tenant: after the tool's start it allocates
// nothing, starts no thread and needs no scheduler, so a tool that fills its
// pids or memory limit cannot take it down by that. The host embeds it
// (make launcher builds it) and runs it from a sealed memfd.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// exitSetup is the exit status after a failed set-up; the host knows the
// reason from the control socket.
const exitSetup = 70

func init() { runtime.LockOSThread() }

func main() {
	debug.SetGCPercent(-1)
	if len(os.Args) < 3 {
		os.Stderr.WriteString("toolhost-launcher: started by toolhost, not by hand\n")
		os.Exit(2)
	}
	opts, err := wire.Decode(os.Args[1])
	must("read options", err)
	must("close descriptors at exec", unix.CloseRange(wire.ControlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC))
	guard := newGuardian(opts)
	must("prepare", harden(opts))
	dir, err := socketDir(opts)
	must("make socket folder", err)
	must("report", sendReady(dir))
	guard.startThreads()
	tool := startTool(opts, os.Args[2:])
	guard.run(tool)
}

// must ends the launcher with a typed report if a step failed. The host takes
// EOF without a report, or an exit status, for nothing but a crash.
func must(step string, err error) {
	if err == nil {
		return
	}
	errno, ok := err.(syscall.Errno)
	if pathErr, isPath := err.(*os.PathError); isPath {
		errno, ok = pathErr.Err.(syscall.Errno)
		step += " " + pathErr.Path
	}
	if !ok {
		step += ": " + err.Error()
	}
	message := wire.AppendFailure(nil, wire.Failure{Step: step, Errno: uint32(errno)})
	_ = unix.Sendto(wire.ControlFD, message, unix.MSG_NOSIGNAL, nil)
	os.Exit(exitSetup)
}

func sendReady(dir int) error {
	var rights []byte
	if dir >= 0 {
		rights = unix.UnixRights(dir)
	}
	return unix.Sendmsg(wire.ControlFD, []byte{wire.KindReady}, rights, nil, unix.MSG_NOSIGNAL)
}

// startTool forks and executes the tool; ForkExec reports a failed exec
// through a close-on-exec pipe, so what this returns has really begun.
func startTool(opts wire.Options, argv []string) int {
	files := []uintptr{0, 1, 2}
	first := wire.ControlFD + 1
	if opts.Kill {
		first++
	}
	for i := range opts.Extra {
		files = append(files, uintptr(first+i))
	}
	pid, err := syscall.ForkExec(opts.Path, argv, &syscall.ProcAttr{
		Dir: opts.Dir, Env: os.Environ(), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	must("execute", err)
	return pid
}
