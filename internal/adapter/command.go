// Package adapter makes tools of other programs. Its command adapter is a
// plugin that runs one plain command on pipes that the host has made, so that
// the command's bytes never pass through the adapter and none is lost when
// both are killed; the adapter's stream carries control only.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/sandbox/apart"
	"github.com/toolhost/toolhost/sandbox/signals"
)

// The command's stdin, stdout and stderr, as the supervisor hands them over.
const (
	commandStdin = 3 + iota
	commandStdout
	commandStderr
)

// ServeCommand runs the command adapter for the host that started it. The
// command comes by argument vector, since JSON could not carry every byte.
func ServeCommand(argv []string) {
	apart.Prepare()
	for fd := commandStdin; fd <= commandStderr; fd++ {
		syscall.CloseOnExec(fd)
	}
	plugin.Serve(plugin.NewTool(plugin.Tool{Name: "command"}, func(ctx context.Context, _ struct{}, _ *plugin.Output) (plugin.None, error) {
		return plugin.None{}, runCommand(ctx, argv)
	}))
}

// runCommand waits for the command. Once it runs the host signals the command
// itself, and its end is the result.
func runCommand(ctx context.Context, argv []string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(argv) == 0 {
		return &plugin.CommandExit{Missing: true, Err: errors.New("no command given")}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return cannotStart(argv[0], err)
	}
	files := []*os.File{
		os.NewFile(commandStdin, "stdin"), os.NewFile(commandStdout, "stdout"), os.NewFile(commandStderr, "stderr"),
	}
	process, err := apart.Start(path, argv, &os.ProcAttr{
		Env: plugin.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	for _, file := range files { // the command's end is to be the pipes' end
		_ = file.Close()
	}
	if err != nil {
		return cannotStart(path, err)
	}
	stop := passOn(ctx, process)
	state, err := process.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("cannot wait for %s: %w", path, err)
	}
	return exitOf(state.Sys().(syscall.WaitStatus))
}

// birth is how long a command may have been on its way when the host signalled
// all processes that there were.
const birth = 100 * time.Millisecond

// passOn gives a command that is just born the SIGTERM that came before it. Until
// then it takes no goroutine: the command may leave no thread for one.
func passOn(ctx context.Context, command *os.Process) (stop func() bool) {
	born := time.Now()
	return context.AfterFunc(ctx, func() {
		if time.Since(born) < birth {
			_ = command.Signal(syscall.SIGTERM) // no matter if it has ended
		}
	})
}

// exitOf returns an error for a status of 0, too: the host may take it for a
// failure.
func exitOf(status syscall.WaitStatus) error {
	if status.Signaled() {
		return &plugin.CommandExit{Signal: signals.Name(status.Signal())}
	}
	return &plugin.CommandExit{Code: status.ExitStatus()}
}

func cannotStart(command string, err error) error {
	_, missing := os.Stat(command)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return notFound(fmt.Errorf("no command %q in PATH: install it below /usr, or give its path", command))
	case errors.Is(err, fs.ErrNotExist) && missing != nil:
		return notFound(fmt.Errorf("no command at %s: correct the path, or grant the call to read it", command))
	}
	return &plugin.CommandExit{NotExecutable: true, Err: fmt.Errorf("cannot execute %s: %w", command, whyNot(err))}
}

func notFound(err error) error { return &plugin.CommandExit{Missing: true, Err: err} }

// whyNot says why a file that is there cannot be executed, and what to do.
func whyNot(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the interpreter that it names in its first line, or its loader, is not there: install that below /usr, or grant the call to read it")
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("it is neither a program of this machine nor a script with #!: build it for this architecture, or name its interpreter before it")
	case errors.Is(err, syscall.EISDIR):
		return errors.New("it is a folder: name the executable in it")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("permission denied: chmod +x it, or name its interpreter before it")
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if execErr, ok := errors.AsType[*exec.Error](err); ok {
		return execErr.Err
	}
	return err
}
