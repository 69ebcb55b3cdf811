package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// A fixed window turns off gRPC's growth to 16 MiB a stream.
	windowBytes = 256 << 10
	// gRPC's own minimum for a connect is 20 s; a Describe has 10.
	connectTimeout = 7 * time.Second
	maxHeaderBytes = 16 << 10
	// A call has few messages, mostly small ones: longer ones take more reads. gRPC
	// has 32 KiB of each by default for every connection.
	readBufferBytes, writeBufferBytes = 4 << 10, 4 << 10
)

// dialOptions come after go-plugin's own and override them: its receive limit
// is 2 GiB, and its dialer follows whatever path the child named.
func (r *childRunner) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return r.handOver() }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(r.options.MaxMessageBytes), grpc.ForceCodecV2(newCodec(context.Background(), r.options, r.decoded))),
		grpc.WithInitialWindowSize(windowBytes),
		grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithReadBufferSize(readBufferBytes),
		grpc.WithWriteBufferSize(writeBufferBytes),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithDisableRetry(),
		grpc.WithStreamInterceptor(refuseBroker),
	}
}

// refuseBroker keeps go-plugin from opening its broker and stdio streams: each
// broker message costs the host a goroutine and a map entry for good.
func refuseBroker(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasPrefix(method, "/plugin.GRPCBroker/") || strings.HasPrefix(method, "/plugin.GRPCStdio/") {
		return nil, status.Error(codes.Unimplemented, "not offered to tools")
	}
	return streamer(ctx, desc, cc, method, opts...)
}

// dial connects to the tool and checks who is there.
func (r *childRunner) dial(ctx context.Context) error {
	conn, err := r.connect(ctx)
	if err != nil {
		return &HandshakeError{Ended: true, Reason: fmt.Sprintf("cannot connect to the tool's socket %s: %v; listen on it before the handshake line is printed, as plugin.Serve does", r.socket, err)}
	}
	if err := checkPeer(conn, r.child.PeerUID); err != nil {
		_ = conn.Close()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire = &greetedConn{Conn: conn, intake: &intake{memory: r.options.Received}}
	r.dialled = r.wire
	return nil
}

func (r *childRunner) connect(ctx context.Context) (*net.UnixConn, error) {
	if r.child.Dial != nil {
		return r.child.Dial(ctx, r.socket)
	}
	return connectBeneath(ctx, int(r.child.SocketDir.Fd()), r.socket)
}

// decoded is called for each message that gRPC has handed on.
func (r *childRunner) decoded(length int) {
	r.mu.Lock()
	wire := r.wire
	r.mu.Unlock()
	wire.intake.decoded(length)
}

// handOver gives gRPC the one connection: a second one could reach another
// process.
func (r *childRunner) handOver() (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	conn := r.dialled
	if conn == nil {
		return nil, permanent{errors.New("a tool's connection is made once")}
	}
	r.dialled = nil
	return conn, nil
}

// closeUndialled closes the connection that gRPC never asked for.
func (r *childRunner) closeUndialled() {
	if conn, err := r.handOver(); err == nil {
		_ = conn.Close()
	}
}

// permanent tells gRPC not to try again.
type permanent struct{ error }

func (permanent) Temporary() bool { return false }

// connectBeneath connects to the socket `name` in the folder dir, following no
// link, by way of /proc so that the name is resolved exactly once.
func connectBeneath(ctx context.Context, dir int, name string) (*net.UnixConn, error) {
	socket, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	var st unix.Stat_t
	if err := unix.Fstat(socket, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%q is not a socket", name)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", socket))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return conn.(*net.UnixConn), nil
}

// checkPeer refuses a socket that someone else listens on. SO_PEERCRED gives
// the pid of the process that called listen, so only the uid counts.
func checkPeer(conn *net.UnixConn, want uint32) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if credErr != nil {
		return fmt.Errorf("cannot read the peer's credentials: %w", credErr)
	}
	if cred.Uid != want {
		return &HandshakeError{Reason: fmt.Sprintf("the tool's socket belongs to uid %d, not %d", cred.Uid, want)}
	}
	return nil
}

// dispenser hands the connection over as it is.
type dispenser struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (dispenser) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("bug: the host's side of a plugin is not a server")
}

func (dispenser) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
