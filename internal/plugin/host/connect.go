package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/toolhost/toolhost/internal/plugin/rpc"
)

// Child is a started tool process, as its starter presents it.
type Child struct {
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
	// Kill ends the process at once. It is called if the connection cannot be
	// made, possibly more than once, but not where the tool has ended its output
	// (HandshakeError.Ended): who started it is to kill what may be left.
	Kill func()
}

// Options of Connect.
type Options struct {
	// RuntimeDir is a short path (sockets have 108 bytes) in which a folder is made
	// for the tool's socket, unless the tool has one in SocketDir.
	RuntimeDir string
	// Start starts the tool with the additional environment that the handshake
	// needs. socketDir is the existing folder for the tool's socket, empty with
	// SocketDir.
	Start func(env []string, socketDir string) (*Child, error)
	// SocketDir is the folder for the tool's socket as the tool sees it, if Start
	// gives it one that only the tool sees by that path.
	SocketDir string
	// Stdout receives what the tool writes to its standard output after the
	// handshake. It must not block for long.
	Stdout io.Writer
	// Received is the memory of what has come on the connection and is not
	// decoded yet, Decoded that of messages while they are decoded and looked at.
	// Nil is without a bound for all connections together.
	Received, Decoded Memory
}

// Conn is a connection to a tool that has passed the handshake. Its methods
// may be called from any goroutine.
type Conn struct {
	options Options
	client  *rpc.Client
	wire    *greetedConn
	socket  string
	stdout  *output
	folder  string // of the socket, if it was made here
}

// Connect starts the tool, takes its handshake and dials it. When ctx ends
// first, the child is killed and ctx's cause returned. Errors that are the
// tool's doing are of type *HandshakeError. After an error nothing of the
// connection is left once the child is gone.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	o.complete()
	c := &Conn{options: o}
	child, err := c.start()
	if err != nil {
		c.removeFolder()
		return nil, err
	}
	stop := context.AfterFunc(ctx, child.Kill)
	defer stop()
	if err := c.connect(ctx, child); err != nil {
		if !Ended(err) { // else it ends by itself, and how is worth knowing
			child.Kill()
		}
		c.removeFolder()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

func (o *Options) complete() {
	if o.Received == nil {
		o.Received = unbounded{}
	}
	if o.Decoded == nil {
		o.Decoded = unbounded{}
	}
}

// start starts the tool with a folder for its socket, unless it has one.
func (c *Conn) start() (*Child, error) {
	socketDir := c.options.SocketDir
	if socketDir == "" {
		folder, err := os.MkdirTemp(c.options.RuntimeDir, "plugin-dir")
		if err != nil {
			return nil, fmt.Errorf("cannot make a folder for the tool's socket: %w", err)
		}
		c.folder, socketDir = folder, folder
	}
	child, err := c.options.Start(Environment(socketDir), c.folder)
	if err != nil {
		return nil, err
	}
	c.stdout = read(child.Stdout, socketDir, c.options.Stdout)
	return child, nil
}

func (c *Conn) connect(ctx context.Context, child *Child) (err error) {
	if c.socket, err = c.stdout.handshake(ctx); err != nil {
		return err
	}
	conn, err := dial(ctx, child, c.socket)
	if err != nil {
		return err
	}
	c.speak(conn)
	return nil
}

// speak takes a connection to the tool for gRPC.
func (c *Conn) speak(conn *net.UnixConn) {
	c.wire = &greetedConn{UnixConn: conn}
	c.client = rpc.NewClient(c.wire, rpc.Options{Received: received{c.options.Received}}, connectTimeout)
}

// Close frees the connection. Call it after the process is gone: a living one
// would lose its partial results.
func (c *Conn) Close() {
	c.client.Close()
	<-c.stdout.copied
	c.removeFolder()
}

func (c *Conn) removeFolder() {
	if c.folder != "" {
		_ = os.RemoveAll(c.folder) // the supervisor's next start sweeps what is left
	}
}

// Fail ends the connection; calls that have no result yet end with err.
func (c *Conn) Fail(err error) { c.client.Fail(&failure{err}) }

// failure is this side's own reason for a connection's end.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

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

// Ended says whether err is a HandshakeError of a child that has ended its output.
func Ended(err error) bool {
	broken, ok := errors.AsType[*HandshakeError](err)
	return ok && broken.Ended
}

func (e *HandshakeError) Error() string {
	if e.Output == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s; it wrote %q", e.Reason, e.Output)
}
