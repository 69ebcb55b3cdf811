package bench

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/toolhost/toolhost/internal/plugin/host"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// BenchmarkWarmCall: a request and its reply over a connection that exists,
// through the checked host side, against a bare gRPC unary call of the same
// size on a unix socket to another process.
func BenchmarkWarmCall(b *testing.B) {
	conn, stop := connect(b)
	defer stop()
	bare, stopBare := bareCall(b)
	defer stopBare()
	n, ratio := contest(b, func(b *testing.B) {
		if _, err := conn.Describe(context.Background()); err != nil {
			b.Fatal(err)
		}
	}, bare, nil)
	atMost(b, n, "ratio", ratio, warmRatio)
}

// BenchmarkWarmStream: the same with a whole tool call, which is a stream.
func BenchmarkWarmStream(b *testing.B) {
	conn, stop := connect(b)
	defer stop()
	bare, stopBare := bareCall(b)
	defer stopBare()
	n := 0
	contest(b, func(b *testing.B) {
		n++
		request := &pluginv1.CallRequest{CallId: strconv.Itoa(n), Tool: "echo", Arguments: arguments}
		if err := conn.Call(context.Background(), request, func(*pluginv1.CallEvent, time.Time) {}); err != nil {
			b.Fatal(err)
		}
	}, bare, nil)
}

// connect starts the tool without a sandbox: the connection alone is measured.
func connect(b *testing.B) (*host.Conn, func()) {
	var cmd *exec.Cmd
	gone := make(chan struct{})
	conn, err := host.Connect(b.Context(), host.Options{
		RuntimeDir: b.TempDir(), Stdout: os.Stderr,
		Start: func(env []string, dir string) (*host.Child, error) {
			cmd = exec.Command(self)
			cmd.Env = env
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				return nil, err
			}
			socketDir, err := os.Open(dir)
			if err != nil {
				return nil, err
			}
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			return &host.Child{
				Stdout: stdout, SocketDir: socketDir, PeerUID: uint32(os.Geteuid()),
				Kill: func() { cmd.Process.Kill() },
			}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return conn, func() {
		cmd.Process.Kill()
		cmd.Wait()
		close(gone)
		conn.Close()
	}
}

const bareVar = "TOOLHOST_BENCH_BARE"

// bareCall is a unary call to a gRPC server in another process, with nothing
// around it.
func bareCall(b *testing.B) (call func(*testing.B), stop func()) {
	socket := filepath.Join(b.TempDir(), "s")
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), bareVar+"="+socket)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	payload := wrapperspb.Bytes(arguments)
	call = func(b *testing.B) {
		reply := new(wrapperspb.BytesValue)
		if err := conn.Invoke(context.Background(), "/bench.Bare/Echo", payload, reply); err != nil {
			b.Fatal(err)
		}
	}
	return call, func() {
		conn.Close()
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func serveBare(socket string) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Bare", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.BytesValue)
			return in, decode(in)
		}}},
	}, nil)
	os.Stdout.WriteString("r")
	panic(server.Serve(listener))
}
