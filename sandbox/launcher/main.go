// Command launcher is PID 1 of every call's PID namespace. It builds the
// tool's surroundings, starts the tool, reaps orphans, and ends the whole tree
// when its host is gone or its own timer runs out. The same program is the
// zygote that gives birth to launchers, and the tool of the trial call by
// which a host learns what it offers.
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
	var mode string
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case wire.ModeZygote:
		zygote()
	case wire.ModeLaunch:
		launch()
	case wire.ModeTrial:
		os.Exit(trial(os.Args[2:]))
	default:
		os.Stderr.WriteString("toolhost-launcher: started by toolhost, not by hand\n")
		os.Exit(2)
	}
}

func launch() {
	debug.SetGCPercent(-1)
	must("close descriptors at exec", unix.CloseRange(wire.ControlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC))
	opts, err := readOptions()
	must("read options", err)
	guard := newGuardian(opts)
	ready := surround(&opts)
	must("report", sendReady(ready))
	if opts.Confine {
		confine(&opts.Root)
	}
	guard.startThreads()
	settleSignals()
	tool := startTool(&opts)
	guard.run(tool)
}

func readOptions() (wire.Options, error) {
	var st unix.Stat_t
	if err := unix.Fstat(wire.SpecFD, &st); err != nil {
		return wire.Options{}, err
	}
	raw := make([]byte, st.Size)
	for off := 0; off < len(raw); {
		n, err := unix.Pread(wire.SpecFD, raw[off:], int64(off))
		if err != nil || n == 0 {
			return wire.Options{}, unix.EIO
		}
		off += n
	}
	_ = unix.Close(wire.SpecFD)
	return wire.Decode(raw)
}

// must ends the launcher with a typed report if a step failed. The host takes
// EOF without a report, or an exit status, for nothing but a crash.
func must(step string, err error) {
	if err != nil {
		sendFailure(wire.ControlFD, step, err)
		os.Exit(exitSetup)
	}
}

func sendFailure(control int, step string, err error) {
	errno, ok := err.(syscall.Errno)
	if pathErr, isPath := err.(*os.PathError); isPath {
		errno, ok = pathErr.Err.(syscall.Errno)
		step += " " + pathErr.Path
	}
	if !ok {
		step += ": " + err.Error()
	}
	message := wire.AppendFailure(nil, wire.Failure{Step: step, Errno: uint32(errno)})
	_ = unix.Sendto(control, message, unix.MSG_NOSIGNAL, nil)
}

func sendReady(fds []int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(wire.ControlFD, []byte{wire.KindReady}, rights, nil, unix.MSG_NOSIGNAL)
}

// startTool forks and executes the tool; ForkExec reports a failed exec
// through a close-on-exec pipe, so what this returns has really begun.
func startTool(opts *wire.Options) int {
	files := []uintptr{0, 1, 2}
	for i := range int(opts.Extra) {
		files = append(files, uintptr(opts.ExtraFD()+i))
	}
	pid, err := syscall.ForkExec(opts.Path, opts.Args, &syscall.ProcAttr{
		Dir: opts.Dir, Env: opts.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	must(wire.StepExecute, err)
	return pid
}
