package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// socketDir holds a socket `real`, with a listener, and `stale`, without one.
// Its path is short: sockets have 108 bytes.
func socketDir(t *testing.T) (dir *os.File, listener *net.UnixListener) {
	t.Helper()
	path, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	listener = listenUnix(t, filepath.Join(path, "real"))
	t.Cleanup(func() { listener.Close() })
	stale := listenUnix(t, filepath.Join(path, "stale"))
	stale.SetUnlinkOnClose(false)
	stale.Close()
	dir, err = os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir, listener
}

func listenUnix(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func connectReal(t *testing.T) *net.UnixConn {
	t.Helper()
	dir, _ := socketDir(t)
	conn, err := connectBeneath(t.Context(), int(dir.Fd()), "real")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestConnectBeneathReachesTheSocket(t *testing.T) {
	dir, listener := socketDir(t)
	conn, err := connectBeneath(t.Context(), int(dir.Fd()), "real")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestConnectBeneathFollowsNothing(t *testing.T) {
	dir, _ := socketDir(t)
	in := func(name string) string { return filepath.Join(dir.Name(), name) }
	if err := errors.Join(
		os.Symlink("real", in("link")), os.Symlink(in("real"), in("absolute-link")), os.Symlink(".", in("folder-link")),
		os.WriteFile(in("file"), nil, 0o600), os.Mkdir(in("folder"), 0o700), unix.Mkfifo(in("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		errno error  // the refusal, or
		text  string // part of its text
	}{
		{"link", nil, "is not a socket"}, // openat2(2): O_PATH and O_NOFOLLOW open the link itself
		{"absolute-link", nil, "is not a socket"},
		{"folder-link/real", unix.ELOOP, ""},
		{"file", nil, `"file" is not a socket`},
		{"folder", nil, "is not a socket"},
		{"fifo", nil, "is not a socket"},
		{".", nil, "is not a socket"},
		{"missing", unix.ENOENT, ""},
		{"", unix.ENOENT, ""},
		{"stale", unix.ECONNREFUSED, ""},
		{"../" + filepath.Base(dir.Name()) + "/real", unix.EXDEV, ""},
		{in("real"), unix.EXDEV, ""},
	} {
		conn, err := connectBeneath(t.Context(), int(dir.Fd()), test.name)
		if conn != nil {
			t.Errorf("%s: connected", test.name)
			conn.Close()
		}
		if err == nil || test.errno != nil && !errors.Is(err, test.errno) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %v %s", test.name, err, test.errno, test.text)
		}
	}
}

func TestConnectBeneathEndsWithItsContext(t *testing.T) {
	dir, _ := socketDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := connectBeneath(ctx, int(dir.Fd()), "real"); err == nil {
		conn.Close()
		t.Error("connected")
	}
}

func TestConnectBeneathLeavesNoDescriptor(t *testing.T) {
	dir, _ := socketDir(t)
	connect := func(name string) {
		if conn, err := connectBeneath(t.Context(), int(dir.Fd()), name); err == nil {
			conn.Close()
		}
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	connect("real") // the runtime's own descriptors are open after this
	before := open()
	for range 10 {
		connect("real")
		connect("stale")
		connect(".")
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestCheckPeer(t *testing.T) {
	conn, self := connectReal(t), uint32(os.Getuid())
	if err := checkPeer(conn, self); err != nil {
		t.Error(err)
	}
	err := checkPeer(conn, self+1)
	if refused, ok := errors.AsType[*HandshakeError](err); !ok || !strings.Contains(refused.Reason, "belongs to uid") {
		t.Errorf("wrong uid: %v", err)
	}
	conn.Close()
	if err := checkPeer(conn, self); err == nil {
		t.Error("a closed connection has a peer")
	}
}

func TestDialRefusesAStrangersSocket(t *testing.T) {
	dir, listener := socketDir(t)
	child := &Child{SocketDir: dir, PeerUID: uint32(os.Getuid()) + 1}
	conn, err := dial(t.Context(), child, "real")
	if _, ok := errors.AsType[*HandshakeError](err); !ok || conn != nil {
		t.Errorf("error %v, connection %v", err, conn)
	}
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if _, err := peer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
	_, err = dial(t.Context(), child, "missing")
	if _, ok := errors.AsType[*HandshakeError](err); !ok {
		t.Error("a missing socket is the tool's doing")
	}
}
