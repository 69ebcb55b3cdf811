package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// maxHelloBytes bounds what a ClientHello and its records may have.
const maxHelloBytes = 64 << 10

var (
	errHello  = errors.New("it does not begin with a TLS ClientHello")
	errSilent = errors.New("it did not begin with a TLS ClientHello in time")
	errUnsaid = errors.New("it has ended before anything was said")
	errGotIt  = errors.New("the hello has been read")
)

// readHello reads a TLS ClientHello, however it is split, and returns its server
// name with all that was read. The error is errUnsaid where there is nothing to judge.
func readHello(conn net.Conn, by time.Time) (name string, read []byte, err error) {
	if err := conn.SetReadDeadline(by); err != nil {
		return "", nil, errUnsaid
	}
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	r := &recorder{Conn: conn}
	got := false
	server := tls.Server(r, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, got = lower(hello.ServerName), true
		return nil, errGotIt
	}})
	err = server.Handshake()
	if got {
		return name, r.read, nil
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", nil, errSilent
	case len(r.read) == 0 || errors.Is(err, net.ErrClosed):
		return "", nil, errUnsaid
	}
	return "", nil, errHello
}

// recorder keeps what is read, and says nothing.
type recorder struct {
	net.Conn
	read []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	left := maxHelloBytes + 1024 - len(r.read) // records have headers of their own
	if left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.Conn.Read(p[:min(len(p), left)])
	r.read = append(r.read, p[:n]...)
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) Close() error                { return nil }

// lower is a name in lower case as servers compare it: in ASCII alone (RFC 4343).
// In Unicode a Kelvin sign would become a k.
func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
