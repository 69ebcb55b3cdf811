package daemon

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// refuses wants a second daemon to end at once, and the first to be as before.
func (w *world) refuses(first *process, want ...string) {
	w.t.Helper()
	second := w.command().start()
	if code := second.code(); code != 1 {
		w.t.Errorf("exit status %d", code)
	}
	for _, text := range want {
		if !strings.Contains(second.log.text(), text) {
			w.t.Errorf("no %q in: %s", text, second.log.text())
		}
	}
	first.waitReady()
}

func TestOneDaemonPerState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first := w.daemon()
	other := *w
	other.Socket = filepath.Join(w.dir, "s2")
	other.refuses(first, w.State, "process "+strconv.Itoa(first.cmd.Process.Pid), "--state")
	if _, err := os.Lstat(other.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has made a socket: %v", err)
	}
}

func TestOneDaemonPerSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first := w.daemon()
	other := *w
	other.State = filepath.Join(w.dir, "state2")
	other.refuses(first, "another daemon listens on "+w.Socket, "--socket")
	// Not even without the lock is a socket taken that somebody listens on.
	if err := os.Remove(w.Socket + ".lock"); err != nil {
		t.Fatal(err)
	}
	other.refuses(first, "listens on "+w.Socket)
}

// What is not a socket of a dead daemon is left alone.
func TestSocketReplacesOnlySockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if err := os.WriteFile(w.Socket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := w.command().start()
	if code := d.code(); code != 1 || !strings.Contains(d.log.text(), "is not a socket") {
		t.Errorf("exit status %d: %s", code, d.log.text())
	}
	if text, err := os.ReadFile(w.Socket); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q: %v", text, err)
	}
	if _, err := os.Lstat(w.Socket + ".lock"); err == nil {
		t.Error("a lock was left beside it")
	}
}

func TestStaleSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	w.daemon()
}

func TestSocketMode(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]fs.FileMode{"": 0o600, "socket: {mode: 0660, group: \"12345\"}\n": 0o660} {
		w := newWorld(t, settings)
		w.daemon()
		info, err := os.Lstat(w.Socket)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %v, want %v: %v", info.Mode(), want, err)
		}
		if gid := info.Sys().(*syscall.Stat_t).Gid; want == 0o660 && gid != 12345 {
			t.Errorf("group %d", gid)
		}
	}
}

// A daemon that stops removes its own socket only.
func TestForeignSocketIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	if err := os.Remove(w.Socket); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", w.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d.signal(syscall.SIGTERM)
	d.code()
	if _, err := os.Lstat(w.Socket); err != nil {
		t.Error(err)
	}
}

var listens = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// tcp is the URL of the daemon's TCP port, once its log has it: that may be
// later than its socket answers.
func (p *process) tcp() string {
	p.t.Helper()
	var found []string
	wait.Until(p.t, "the log names the port", func() bool {
		found = listens.FindStringSubmatch(p.log.text())
		return found != nil
	})
	return "http://" + found[1]
}

func TestToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	path := filepath.Join(w.State, TokenName)
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v: %v", info.Mode(), err)
	}
	raw, _ := os.ReadFile(path)
	token := strings.TrimSpace(string(raw))
	d.waitLog(path)
	url := d.tcp()
	c, err := client.New(client.Options{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	response, err := http.Get(url + "/api/ready")
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %+v", err, response)
	}
	response.Body.Close()
	said := saidBy(w.mustRun(w.begin(), "work", workArgs{Variables: true}))
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(d.cmd.Process.Pid) + "/environ")
	if strings.Contains(d.log.text()+said+string(environ), token) {
		t.Error("the token is in the log or an environment")
	}
	d.signal(syscall.SIGTERM)
	d.code()
	w.daemon()
	if now, _ := os.ReadFile(path); string(now) != string(raw) {
		t.Error("the next daemon has another token")
	}
}

// Who may not have a low port hears by what they would.
func TestPortsThatAreNotToBeHad(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]bool{syscall.EACCES: true, syscall.EADDRINUSE: false} {
		err := notListening("0.0.0.0:443", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", errno)})
		if said := err.Error(); strings.Contains(said, "CapabilityBoundingSet=CAP_NET_BIND_SERVICE") != want || strings.Contains(said, "AmbientCapabilities=CAP_NET_BIND_SERVICE") != want || !strings.Contains(said, "name another port") {
			t.Error(said)
		}
	}
}

func TestTCPNeedsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen, w.State = "127.0.0.1:0", ""
	d := w.command().start()
	if code := d.code(); code != 1 || !strings.Contains(d.log.text(), "--state") {
		t.Errorf("exit status %d: %s", code, d.log.text())
	}
}

// Without a state folder calls are made all the same.
func TestNoState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.State = ""
	w.daemon()
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	var refused *api.Error
	if _, err := w.client.PastTurns(wait.Context(t), api.Filter{}); !errors.As(err, &refused) || refused.Code != "no_history" {
		t.Errorf("history: %v", err)
	}
}
