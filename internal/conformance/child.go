package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/plugin"
)

const maxKeptOutput = 64 << 10

// child is one process of the binary under test, and the connection to it.
type child struct {
	process        *os.Process
	conn           *host.Conn
	stdout, stderr *kept
	socketDir      string
	gone           chan struct{} // closed when it has been waited for
	silent         chan struct{} // closed when nothing holds its stderr open
	state          *os.ProcessState
	dir            *os.File
	patience       time.Duration
}

// kept is the beginning of what a process wrote.
type kept struct {
	mu   sync.Mutex
	text []byte
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if room := maxKeptOutput - len(k.text); room > 0 {
		k.text = append(k.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.ToValidUTF8(string(k.text), "\uFFFD")
}

// start runs the binary and shakes hands with it.
func (b *bench) start(ctx context.Context) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.job.patience(), fmt.Errorf("no handshake within %s", b.job.patience()))
	defer cancel()
	c := &child{patience: b.job.patience(), stdout: &kept{}, stderr: &kept{}, gone: make(chan struct{}), silent: make(chan struct{})}
	conn, err := host.Connect(ctx, host.Options{
		RuntimeDir: b.runtime, Stdout: c.stdout,
		Start: func(env []string, socketDir string) (*host.Child, error) { return b.launch(c, env, socketDir) },
	})
	if err != nil {
		b.sweep()
		return nil, c.explain(err)
	}
	c.conn = conn
	return c, nil
}

// launch starts the process on pipes of its own, so that a process that
// inherits them keeps nobody waiting.
func (b *bench) launch(c *child, env []string, socketDir string) (*host.Child, error) {
	stdout, childStdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, childStderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.job.Binary, b.job.Args...)
	cmd.Env, cmd.Dir = append(plugin.Environ(), env...), b.job.Dir
	cmd.Stdout, cmd.Stderr = childStdout, childStderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = childStdout.Close(), childStderr.Close()
	if err != nil {
		_, _ = stdout.Close(), stderr.Close()
		return nil, err
	}
	if c.dir, err = os.Open(socketDir); err != nil {
		return nil, err
	}
	c.process, c.socketDir = cmd.Process, socketDir
	go func() {
		defer close(c.silent)
		defer stderr.Close()
		_, _ = io.Copy(c.stderr, stderr)
	}()
	go func() {
		defer close(c.gone)
		_ = cmd.Wait()
		c.state = cmd.ProcessState
	}()
	return &host.Child{
		Stdout: stdout, SocketDir: c.dir, PeerUID: uint32(os.Getuid()),
		Kill: func() { _ = cmd.Process.Kill() }, Dial: c.dial,
	}, nil
}

// dial connects by path: a sandbox has no openat2(2), and here the binary may
// reach no more by a link than this process may.
func (c *child) dial(ctx context.Context, name string) (*net.UnixConn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(c.socketDir, name))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// explain adds what the process said and how it ended to why there is no
// connection to it.
func (c *child) explain(err error) error {
	text := err.Error()
	if c.process != nil {
		text += c.lastWords()
	}
	return errors.New(text)
}

// ended says how the process ended, or "" while it runs.
func (c *child) ended() string {
	select {
	case <-c.gone:
	default:
		return ""
	}
	return c.state.String() + c.lastWords()
}

// lastWords says what an ended process wrote to stderr. It waits for the rest of
// it for a second at most: a process left behind may hold the pipe open.
func (c *child) lastWords() string {
	select {
	case <-c.silent:
	case <-time.After(time.Second):
	}
	said := strings.TrimSpace(c.stderr.String())
	if said == "" {
		return ""
	}
	return "; on stderr: " + excerpt(said)
}

// endedSoon gives a process that has dropped its connection the time to end.
func (c *child) endedSoon() string {
	select {
	case <-c.gone:
	case <-time.After(time.Second):
	}
	return c.ended()
}

// stop ends the process and everything that it started.
func (b *bench) stop(c *child) {
	_ = c.process.Kill()
	b.sweep()
	c.conn.Close()
	<-c.gone
	_ = c.dir.Close()
}
