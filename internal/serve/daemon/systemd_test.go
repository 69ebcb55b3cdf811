package daemon

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	given := filepath.Join(w.dir, "given")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: given, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := w.command()
	// Only the process itself knows its id before it begins.
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Path, d.cmd.Args = shell, []string{"sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0"`, os.Args[0]}
	d.cmd.Env = append(d.cmd.Env, "NOTIFY_SOCKET="+conn.LocalAddr().String(), "LISTEN_FDS=1", "LISTEN_FDNAMES=toolhost.socket", "WATCHDOG_USEC=20000")
	d.cmd.ExtraFiles = []*os.File{file}
	d.start()
	n.waitFor("READY=1")
	n.waitFor("STATUS=")
	n.waitFor("WATCHDOG=1")
	if _, err := os.Lstat(w.Socket); !os.IsNotExist(err) {
		t.Errorf("it has made a socket of its own: %v", err)
	}
	if w.client, err = client.New(client.Options{Socket: given}); err != nil {
		t.Fatal(err)
	}
	d.client = w.client
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
