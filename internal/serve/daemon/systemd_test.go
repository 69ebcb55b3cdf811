package daemon

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// notices plays the service manager's end of sd_notify, which reads all the time:
// a daemon waits a second at most for room.
type notices struct {
	t    *testing.T
	seen chan string // line by line
}

func listen(t *testing.T, conn *net.UnixConn) *notices {
	n := &notices{t: t, seen: make(chan string, 1<<16)}
	go func() {
		for buf := make([]byte, 4096); ; {
			size, err := conn.Read(buf)
			if err != nil {
				return
			}
			for _, line := range strings.Split(string(buf[:size]), "\n") {
				n.seen <- line
			}
		}
	}()
	return n
}

func (n *notices) waitFor(line string) {
	n.t.Helper()
	for limit := wait.Context(n.t).Done(); ; {
		select {
		case one := <-n.seen:
			if strings.HasPrefix(one, line) {
				return
			}
		case <-limit:
			n.t.Fatalf("waited in vain for %s", line)
		}
	}
}

// socketOf is a socket as a service manager has it, which listens until the test is over.
func (w *world) socketOf() (path string, file *os.File) {
	w.t.Helper()
	path = filepath.Join(w.dir, "given")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	if file, err = l.File(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = file.Close() })
	return path, file
}

// activated is the command of a daemon to which a service manager hands over a socket.
func (w *world) activated(socket *os.File, variables ...string) *process {
	w.t.Helper()
	d := w.command()
	// Only the process itself knows its id before it begins.
	shell, err := exec.LookPath("sh")
	if err != nil {
		w.t.Fatal(err)
	}
	d.cmd.Path, d.cmd.Args = shell, []string{"sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0"`, os.Args[0]}
	d.cmd.Env = append(append(d.cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=toolhost.socket"), variables...)
	d.cmd.ExtraFiles = []*os.File{socket}
	return d
}

// clientAt has connections of its own.
func (w *world) clientAt(socket string) *client.Client {
	w.t.Helper()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// A service manager hands over sockets, hears how things stand, and its
// variables go no further.
func TestServiceManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(w.dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := listen(t, conn)
	given, file := w.socketOf()
	d := w.activated(file, "NOTIFY_SOCKET="+conn.LocalAddr().String(), "WATCHDOG_USEC=20000")
	d.start()
	n.waitFor("READY=1")
	n.waitFor("STATUS=")
	n.waitFor("WATCHDOG=1")
	if _, err := os.Lstat(w.Socket); !os.IsNotExist(err) {
		t.Errorf("it has made a socket of its own: %v", err)
	}
	d.client = w.clientAt(given)
	w.client = d.client
	environment := saidBy(w.mustRun(w.begin(), "work", workArgs{Variables: true}))
	for _, name := range handedOver {
		if strings.Contains(environment, name+"=") {
			t.Errorf("a tool has %s", name)
		}
	}
	d.signal(syscall.SIGHUP)
	n.waitFor("RELOADING=1")
	n.waitFor("MONOTONIC_USEC=")
	n.waitFor("READY=1")
	d.signal(syscall.SIGTERM)
	n.waitFor("STOPPING=1")
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Lstat(given); err != nil {
		t.Errorf("the socket that was handed over: %v", err)
	}
}

// While calls finish, clients that connect to a socket that was handed over are answered:
// those that made the calls need further connections. From then on clients wait in the socket.
func TestStopAtASocketThatWasHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	given, file := w.socketOf()
	d := w.activated(file).start()
	w.client = w.clientAt(given)
	d.client = w.client
	d.waitReady()
	turn := w.begin()
	done := w.launch(turn, "work", workArgs{For: filepath.Join(w.dir, "never")})
	d.signal(syscall.SIGTERM)
	d.waitLog("stopping")
	d.client = w.clientAt(given)
	d.unready("the daemon is about to end")
	if err := w.clientAt(given).Abort(wait.Context(t), turn); err != nil {
		t.Errorf("to abort: %v", err)
	}
	if o := w.outcome(done); o.err != nil || o.result.Status != api.StatusCancelled || o.result.Reason != api.ReasonUser {
		t.Errorf("the call: %+v", o)
	}
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	early, err := net.Dial("unix", given)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if _, err := early.Write([]byte("GET /api/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	w.activated(file).start()
	answer, err := http.ReadResponse(bufio.NewReader(early), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("who came before the next daemon: %+v, %v", answer, err)
	}
}

func TestWatchdogTime(t *testing.T) {
	beat := func(pid, usec string) time.Duration {
		t.Setenv("WATCHDOG_PID", pid)
		t.Setenv("WATCHDOG_USEC", usec)
		m, _, err := takeOver()
		if err != nil {
			t.Fatal(err)
		}
		return m.beat
	}
	for usec, want := range map[string]time.Duration{"": 0, "x": 0, "-5": 0, "3000000": 1500 * time.Millisecond} {
		if got := beat("", usec); got != want {
			t.Errorf("%q: %s, want %s", usec, got, want)
		}
	}
	if got := beat("1", "3000000"); got != 0 {
		t.Errorf("another process's: %s", got)
	}
}
