package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/seqpacket"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Dialer returns a function that connects to the named socket in the tool's
// folder, or nil if the host can connect directly. An unprivileged host cannot:
// it has no rights over the call's own user.
func (p *Process) Dialer() func(ctx context.Context, name string) (*net.UnixConn, error) {
	if os.Geteuid() == 0 || p.who.give == nil {
		return nil
	}
	return p.dial
}

// dial has a zygote connect: the one that lives now, for that which the process was born of
// may have died since.
func (p *Process) dial(ctx context.Context, name string) (*net.UnixConn, error) {
	conn, err := p.dialOnce(ctx, name)
	if errors.Is(err, errZygoteGone) {
		conn, err = p.dialOnce(ctx, name)
	}
	return conn, err
}

func (p *Process) dialOnce(ctx context.Context, name string) (*net.UnixConn, error) {
	z, _, err := p.host.use()
	if err != nil {
		return nil, err
	}
	defer p.host.release(z)
	conn, err := z.connect(ctx, name, p.socketDir)
	if errors.Is(err, errZygoteGone) {
		p.host.retire(z) // nobody had noticed
	}
	return conn, err
}

// connect connects to a socket in a folder.
func (z *zygote) connect(ctx context.Context, name string, dir *os.File) (*net.UnixConn, error) {
	answer, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	message := append([]byte{wire.RequestConnect}, name...)
	err = z.request(ctx, message, []*os.File{theirs, dir})
	_ = theirs.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = answer.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	return receiveConn(ctx, answer)
}

func receiveConn(ctx context.Context, answer *net.UnixConn) (*net.UnixConn, error) {
	buf, oob := make([]byte, wire.MaxMessageBytes), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, err := seqpacket.Read(answer, buf, oob)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("the zygote did not answer: %w", err)
	case n == 0:
		return nil, errZygoteGone
	}
	if f, ok := wire.ParseFailure(buf[:n]); ok {
		return nil, syscall.Errno(f.Errno)
	}
	files := receivedFiles(oob[:oobn], false)
	if len(files) != 1 {
		return nil, errors.New("the zygote sent no connection")
	}
	defer files[0].Close()
	conn, err := net.FileConn(files[0])
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
