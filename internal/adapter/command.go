// Package adapter makes tools of what is none. Its command adapter is a plugin
// that runs one plain command on pipes that the host has made, so that the
// command's bytes never pass through the adapter and none is lost when both
// are killed; the adapter's stream carries control only.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
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
		Env: withoutHandshake(os.Environ()), Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
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

// exitOf tells of a status of 0, too: the host may take it for a failure.
func exitOf(status syscall.WaitStatus) error {
	if status.Signaled() {
		return &plugin.CommandExit{Signal: signals.Name(status.Signal())}
	}
	return &plugin.CommandExit{Code: status.ExitStatus()}
}

func cannotStart(command string, err error) error {
	if _, missing := os.Stat(command); errors.Is(err, fs.ErrNotExist) && missing == nil {
		return &plugin.CommandExit{NotExecutable: true, Err: fmt.Errorf("cannot execute %s: the interpreter that it names in its first line, or its loader, is not there", command)}
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		if errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("no command %q in PATH", command)
		} else {
			err = fmt.Errorf("no command at %s", command)
		}
		return &plugin.CommandExit{Missing: true, Err: err}
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if execErr, ok := errors.AsType[*exec.Error](err); ok {
		err = execErr.Err
	}
	return &plugin.CommandExit{NotExecutable: true, Err: fmt.Errorf("cannot execute %s: %w", command, err)}
}

// handshakeVariables are go-plugin's.
var handshakeVariables = []string{
	"TOOLHOST_PLUGIN", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR",
}

// withoutHandshake keeps what is between host and adapter from the command.
func withoutHandshake(env []string) []string {
	var out []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(handshakeVariables, name) {
			out = append(out, entry)
		}
	}
	return out
}
