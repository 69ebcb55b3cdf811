package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/toolhost/toolhost/plugin/internal/handshake"
)

// maxHandshakeBytes bounds the handshake line; a socket path has 108 bytes.
const maxHandshakeBytes = 4 << 10

// childRunner is go-plugin's view of the child. go-plugin never sees the child's
// own pipes: it gets one rewritten line, and an empty stderr.
type childRunner struct {
	options   Options
	env       []string
	socketDir string // the folder on the host
	toolDir   string // the same as the tool sees it

	mu    sync.Mutex
	child *Child
	ended bool // kill was asked for, maybe before there was a child

	startErr     error
	handshakeErr error // written before Stdout gives EOF
	socket       string
	copied       chan struct{} // closed when all of stdout has been copied
	dialled      net.Conn      // until gRPC takes it
	wire         *greetedConn  // the same, for as long as it lives
}

func (r *childRunner) adopt(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
	r.env, r.socketDir, r.toolDir = cmd.Env, socketDir, socketDir
	if own := r.options.SocketDir; own != "" {
		r.toolDir = own
		r.env = append(slices.DeleteFunc(slices.Clone(cmd.Env), func(entry string) bool {
			return strings.HasPrefix(entry, handshake.SocketDir+"=")
		}), handshake.SocketDir+"="+own)
	}
	return r, nil
}

// Start implements runner.Runner.
func (r *childRunner) Start(context.Context) error {
	child, err := r.options.Start(r.env, r.socketDir)
	if err != nil {
		r.startErr = err
		close(r.copied)
		return err
	}
	r.mu.Lock()
	r.child = child
	ended := r.ended
	r.mu.Unlock()
	if ended {
		child.Kill()
	}
	return nil
}

// Stdout implements runner.Runner: the validated handshake, then EOF. The rest
// of the child's output goes to Options.Stdout.
func (r *childRunner) Stdout() io.ReadCloser {
	return &handshakeReader{runner: r}
}

type handshakeReader struct {
	runner *childRunner
	line   io.Reader
}

// Read waits for the child's first line when it is first called.
func (h *handshakeReader) Read(p []byte) (int, error) {
	if h.line == nil {
		h.line = strings.NewReader(h.runner.handshake())
	}
	return h.line.Read(p)
}

func (h *handshakeReader) Close() error { return nil }

// handshake reads and checks the child's first line and has the rest copied.
func (r *childRunner) handshake() string {
	stdout := bufio.NewReaderSize(r.child.Stdout, maxHandshakeBytes)
	line, err := stdout.ReadSlice('\n')
	rewritten, verdict := checkHandshake(string(line), err, r.toolDir)
	if verdict == nil {
		r.socket = filepath.Base(strings.Split(rewritten, "|")[3])
	} else {
		r.handshakeErr = verdict
		_, _ = r.options.Stdout.Write(bytes.Clone(line))
	}
	go func() {
		defer close(r.copied)
		_, _ = io.Copy(r.options.Stdout, stdout)
	}()
	return rewritten
}

// printFirst is for what prints something else first, and for what is not a tool.
const printFirst = "run it with toolhost exec, or have it print nothing before the handshake"

// checkHandshake turns `1|<version>|unix|<socketDir>/<name>|grpc[|...]` into
// the same line without what may follow (a certificate there crashes
// go-plugin), or says what is wrong with it.
func checkHandshake(line string, err error, socketDir string) (string, error) {
	refuse := func(reason string) (string, error) {
		return "", &HandshakeError{Reason: reason, Output: excerpt(line)}
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return refuse("not a toolhost tool: its first line is longer than " + strconv.Itoa(maxHandshakeBytes) + " bytes; " + printFirst)
	case err != nil:
		reason := "not a toolhost tool: it ended its output without the go-plugin handshake line; build it with package plugin, or run it with toolhost exec"
		return "", &HandshakeError{Reason: reason, Output: excerpt(line), Ended: true}
	}
	f := strings.Split(strings.TrimRight(line, "\r\n"), "|")
	if len(f) < 5 || f[0] != strconv.Itoa(handshake.CoreVersion) {
		return refuse("not a toolhost tool: its first line is not a go-plugin handshake; " + printFirst)
	}
	if f[1] != strconv.Itoa(handshake.Version) {
		return refuse("the tool speaks protocol version " + strconv.Quote(f[1]) + ", this host speaks " + strconv.Itoa(handshake.Version) + "; rebuild the tool with a matching SDK")
	}
	if f[4] != string(goplugin.ProtocolGRPC) {
		return refuse("the tool speaks " + strconv.Quote(f[4]) + " instead of grpc; build it with package plugin, or have it serve gRPC")
	}
	if name := filepath.Base(f[3]); f[2] != "unix" || f[3] != filepath.Join(socketDir, name) || name == "." || name == ".." {
		return refuse("the tool listens outside the call's socket folder; have it listen on a unix socket in $" + handshake.SocketDir)
	}
	return strings.Join(f[:5], "|") + "\n", nil
}

func excerpt(line string) string {
	const limit = 200
	line = strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
	if r := []rune(line); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return line
}

// Stderr implements runner.Runner. Forged log lines on stderr can crash
// go-plugin, so it never sees any.
func (r *childRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Wait implements runner.Runner.
func (r *childRunner) Wait(context.Context) error {
	<-r.child.Gone
	return nil
}

// Kill implements runner.Runner.
func (r *childRunner) Kill(context.Context) error {
	r.kill()
	return nil
}

func (r *childRunner) kill() {
	r.mu.Lock()
	r.ended = true
	child := r.child
	r.mu.Unlock()
	if child != nil {
		child.Kill()
	}
}

// ID implements runner.Runner.
func (r *childRunner) ID() string {
	if r.child == nil {
		return "unstarted"
	}
	return r.child.ID
}

// Name implements runner.Runner.
func (r *childRunner) Name() string { return "tool" }

// Diagnose implements runner.Runner.
func (r *childRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner. The address is only for go-plugin's
// books: dial goes by descriptor.
func (r *childRunner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (r *childRunner) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("the broker is not offered to tools")
}
