package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/toolhost/toolhost/plugin/internal/handshake"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Child is a started tool process, as its starter presents it.
type Child struct {
	// ID names the process in messages; it must not be empty.
	ID string
	// Stdout is the read end of the tool's standard output. Connect reads the
	// handshake line from it and copies all that follows to Options.Stdout.
	Stdout io.Reader
	// SocketDir is an open descriptor of the folder in which the tool makes its
	// socket.
	SocketDir *os.File
	// Dial connects to the tool's socket of this name in SocketDir where the
	// host itself may not; nil where it may.
	Dial func(ctx context.Context, name string) (*net.UnixConn, error)
	// PeerUID is the uid, as the host sees it, that the tool's socket must
	// belong to.
	PeerUID uint32
	// Gone is closed when the process has ended.
	Gone <-chan struct{}
	// Kill ends the process at once. It is called if the connection cannot be
	// made, possibly more than once.
	Kill func()
}

// Options of Connect.
type Options struct {
	// RuntimeDir is a short path (sockets have 108 bytes) in which go-plugin
	// makes a folder for this connection.
	RuntimeDir string
	// Start starts the tool with the additional environment that the handshake
	// needs. socketDir is the existing folder for the tool's socket.
	Start func(env []string, socketDir string) (*Child, error)
	// SocketDir is the folder for the tool's socket as the tool sees it, if that
	// is another path than the one given to Start.
	SocketDir string
	// Stdout receives what the tool writes to its standard output after the
	// handshake. It must not block for long.
	Stdout io.Writer
	// MaxMessageBytes caps one message from the tool; zero is 4 MiB. Decoded it
	// may take twice as much.
	MaxMessageBytes int
	// Received is the memory of what has come on the connection and is not
	// decoded yet, Decoded that of messages while they are decoded and looked at.
	// Nil is without a bound for all connections together.
	Received, Decoded Memory
}

// DefaultMaxMessageBytes is what Options.MaxMessageBytes is by default.
const DefaultMaxMessageBytes = 4 << 20

// Conn is a connection to a tool that has passed the handshake. Its methods
// may be called from any goroutine.
type Conn struct {
	client *goplugin.Client
	tool   pluginv1.ToolClient
	runner *childRunner
	wire   *greetedConn // nil in tests that dial by themselves
}

// Connect starts the tool, takes its handshake and dials it. When ctx ends
// first, the child is killed and ctx's cause returned. Errors that are the
// tool's doing are of type *HandshakeError. After an error nothing of the
// connection is left once the child is gone.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	o.complete()
	r := &childRunner{options: o, copied: make(chan struct{})}
	client := goplugin.NewClient(r.config(ctx))
	stop := context.AfterFunc(ctx, r.kill)
	defer stop()
	conn, err := dispense(ctx, client, r)
	if err == nil {
		return &Conn{client: client, tool: pluginv1.NewToolClient(conn), runner: r, wire: r.wire}, nil
	}
	r.kill()
	cleanUp(client)
	r.closeUndialled()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, r.explain(err)
}

func (o *Options) complete() {
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if o.Received == nil {
		o.Received = unbounded{}
	}
	if o.Decoded == nil {
		o.Decoded = unbounded{}
	}
}

// dispense drives go-plugin. It panics on some input that a hostile child can
// give, and a library must not take its host down. Dialling comes before
// go-plugin's own, which would put off its errors to the first call.
func dispense(ctx context.Context, client *goplugin.Client, r *childRunner) (conn *grpc.ClientConn, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("go-plugin panicked: %v", p)
		}
	}()
	if _, err := client.Start(); err != nil {
		return nil, err
	}
	if err := r.dial(ctx); err != nil {
		return nil, err
	}
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(handshake.PluginName)
	if err != nil {
		return nil, err
	}
	return raw.(*grpc.ClientConn), nil
}

func (r *childRunner) config(ctx context.Context) *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: handshake.Version, MagicCookieKey: handshake.CookieKey, MagicCookieValue: handshake.CookieValue,
		},
		Plugins:          goplugin.PluginSet{handshake.PluginName: dispenser{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		Logger:           hclog.NewNullLogger(),
		// It gets an empty stderr.
		PluginLogBufferSize: leastBuffer,
		// ctx bounds the start; this only keeps go-plugin from being faster.
		StartTimeout:     startTimeout(ctx),
		RunnerFunc:       r.adopt,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: r.options.RuntimeDir},
		GRPCDialOptions:  r.dialOptions(),
	}
}

// leastBuffer is the least that bufio takes.
const leastBuffer = 16

const noDeadline = 24 * time.Hour

func startTimeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) + time.Minute
	}
	return noDeadline
}

// Close frees the connection. Call it after the process is gone: go-plugin's
// own Kill asks the tool to shut down first, which would cost a living one its
// partial results and a stopped one would never answer.
func (c *Conn) Close() {
	cleanUp(c.client)
	<-c.runner.copied
}

// Fail ends the connection; calls that have no result yet end with err.
func (c *Conn) Fail(err error) {
	if c.wire != nil {
		c.wire.fail(err)
	}
}

// cleanUp is go-plugin's Kill with a watchdog.
func cleanUp(client *goplugin.Client) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		client.Kill()
	}()
	select {
	case <-done:
	case <-time.After(cleanUpTimeout):
	}
}

const cleanUpTimeout = 2 * time.Second

// HandshakeError says that the child is not a tool of this protocol.
type HandshakeError struct {
	// Reason is one line; Output the beginning of what the child wrote instead
	// of a handshake.
	Reason string
	Output string
	// Ended says that the child has ended its output, or listens no more, as one
	// does that has been killed.
	Ended bool
}

func (e *HandshakeError) Error() string {
	if e.Output == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s; it wrote %q", e.Reason, e.Output)
}

// explain prefers the handshake's own verdict to what go-plugin made of it.
func (r *childRunner) explain(err error) error {
	if r.startErr != nil {
		return r.startErr
	}
	if r.handshakeErr != nil {
		return r.handshakeErr
	}
	var refused *HandshakeError
	if errors.As(err, &refused) {
		return refused
	}
	return fmt.Errorf("cannot connect to the tool: %w", err)
}
