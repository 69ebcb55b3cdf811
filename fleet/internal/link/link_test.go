package link

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"github.com/toolhost/toolhost/fleet/internal/seal"
)

// A connection without TLS leads to this machine alone, also where an engine names others.
func TestPlainConnectionsStayHere(t *testing.T) {
	key, err := seal.Create()
	if err != nil {
		t.Fatal(err)
	}
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	conn, err := Connect(Options{URL: "nats://127.0.0.1:1", Key: key, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dialer := conn.Opts.CustomDialer
	if dialer == nil {
		t.Fatal("it leads to any machine")
	}
	if _, err := dialer.Dial("tcp", "192.0.2.1:4222"); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("to another machine: %v", err)
	}
	local, err := dialer.Dial("tcp", here.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = local.Close()
}

// Nothing is waited for where no engine is there to take it.
func TestCloseWithoutAnEngine(t *testing.T) {
	key, err := seal.Create()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := Connect(Options{URL: "nats://127.0.0.1:1", Key: key, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	if err := Close(conn, time.Hour); !errors.Is(err, nats.ErrDisconnected) || !conn.IsClosed() {
		t.Errorf("%v, closed: %t", err, conn.IsClosed())
	}
}
