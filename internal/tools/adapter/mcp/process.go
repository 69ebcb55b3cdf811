package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/shield"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/plugin"
)

// process is a running server.
type process struct {
	os            *os.Process
	stdin, stdout *os.File // this end's
	// exited is closed when the process is gone, state says how.
	exited chan struct{}
	state  *os.ProcessState
}

// startProcess starts the server in a process group of its own. What it cannot
// do to this process, see package shield.
func startProcess(argv []string, stderrTo *tail) (*process, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, cannotStart(argv[0], err)
	}
	var ends [3]struct{ read, write *os.File }
	for i := range ends {
		if ends[i].read, ends[i].write, err = os.Pipe(); err != nil {
			for _, end := range ends[:i] {
				closeAll(end.read, end.write)
			}
			return nil, &plugin.Failure{Kind: plugin.StartFailed, Err: fmt.Errorf("cannot make a pipe: %w; raise the limit of open files", err)}
		}
	}
	stdin, stdout, stderr := ends[0], ends[1], ends[2]
	child, err := shield.Start(path, argv, &os.ProcAttr{
		Env: plugin.Environ(), Files: []*os.File{stdin.read, stdout.write, stderr.write}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	closeAll(stdin.read, stdout.write, stderr.write)
	if err != nil {
		closeAll(stdin.write, stdout.read, stderr.read)
		return nil, cannotStart(path, err)
	}
	p := &process{os: child, stdin: stdin.write, stdout: stdout.read, exited: make(chan struct{})}
	_ = stderrTo.open(stderr.read) // a pipe of ours always can be
	go p.reap(stderr.read, stderrTo)
	return p, nil
}

// reap waits for the process, ends what it leaves in its group, and takes the
// rest of its stderr.
func (p *process) reap(stderr *os.File, to *tail) {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		to.copy()
	}()
	p.state, _ = p.os.Wait()
	p.kill()
	_ = stderr.SetReadDeadline(time.Now().Add(settleTime))
	<-copied
	_ = stderr.Close()
	close(p.exited)
}

// kill ends the process group. Who has left it is for the host to kill.
func (p *process) kill() {
	select {
	case <-p.exited: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.os.Pid, syscall.SIGKILL)
	}
}

// shut ends the process and its pipes.
func (p *process) shut() {
	p.kill()
	closeAll(p.stdin, p.stdout)
}

// exit is how the process has ended; nil if that is not known.
func (p *process) exit() *plugin.CommandExit {
	select {
	case <-p.exited:
	default:
		return nil
	}
	if p.state == nil {
		return nil
	}
	if status := p.state.Sys().(syscall.WaitStatus); status.Signaled() {
		return &plugin.CommandExit{Signal: signals.Name(status.Signal())}
	}
	return &plugin.CommandExit{Code: p.state.ExitCode()}
}

// end says the same in words.
func (p *process) end() string {
	switch exit := p.exit(); {
	case exit == nil:
		return "is gone"
	case exit.Signal != "":
		return "died of " + exit.Signal
	default:
		return fmt.Sprintf("exited with status %d", exit.Code)
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func cannotStart(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no MCP server: there is no command %q where the call can see it: install it below /usr, or grant the call to read it", command)
		return &plugin.Failure{Kind: plugin.Missing, Err: err}
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if execErr, ok := errors.AsType[*exec.Error](err); ok {
		err = execErr.Err
	}
	return &plugin.Failure{Kind: plugin.NotExecutable, Err: fmt.Errorf("no MCP server: cannot execute %s: %w", command, err)}
}
