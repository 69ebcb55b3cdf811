package siege

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const (
	memoryBytes = 512 << 20
	restBound   = 90 * time.Second // a sandbox that waits for a call is given up after a minute
	// What the daemon is told for its stop, and what that may take in all: the
	// calls' wait, their grace and a second, 10 s for clients that take nothing,
	// and as much again for a machine that is busy.
	stopWait, grace = 2 * time.Second, time.Second
	stopBound       = 2 * (stopWait + grace + time.Second + 10*time.Second)
)

// settings has hostile tools in a class as an operator writes it for what is not
// trusted: a few slots, and next to no CPU time beside others.
const settings = `state: %[1]s/state
cgroupParent: %[2]s
dirs: {store: %[1]s/store, runtime: %[1]s/run}
admission: {running: 128, queue: 256}
stop: {wait: %[3]s}
kill: {grace: %[4]s}
journal: {maxSize: 64MiB}
mcp: {clientTimeout: 20s}
classes:
  hostile: {running: 4, timeout: 3s, memory: 128MiB, pids: 32, cpu: 10%%, cpuWeight: 1, env: {TOOLHOST_MARK: %[5]s}}
tools:
  greet: {command: [echo, "hello {name}"], env: {TOOLHOST_MARK: %[5]s}}
  echo: {plugin: %[6]s, args: [echo], tool: hostile, env: {TOOLHOST_MARK: %[5]s}}
  asks: {command: [echo, "{name}"], mode: ask, concurrency: exclusive, class: hostile}
  forbidden: {plugin: %[6]s, args: [describeHang], tool: hostile, mode: deny, class: hostile}
  large: {command: [seq, "1000000"], cpuWeight: 1, env: {TOOLHOST_MARK: %[5]s}}
`

// daemon is `toolhost serve` behind a fence.
type daemon struct {
	t            *testing.T
	dir, mark    string
	fence        *fence
	cmd          *exec.Cmd
	target       target
	client       *client.Client
	exited       chan struct{}
	mounts       string
	peak, counts int64 // of memory: RSS, and what the kernel counts
}

func serve(t *testing.T) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "siege") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &daemon{t: t, dir: dir, mark: filepath.Base(dir), exited: make(chan struct{}), mounts: read(t, "/proc/self/mounts")}
	d.fence = newFence(t, d.mark, memoryBytes)
	d.configure()
	d.start()
	return d
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (d *daemon) configure() {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	text := fmt.Sprintf(settings, d.dir, d.fence.path, stopWait, grace, d.mark, self)
	for _, hostile := range hostileTools {
		text += hostile.entry(self)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "toolhost.yaml"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := binaries.Into(d.dir, "toolhost"); err != nil {
		d.t.Fatal(err)
	}
}

var tcpAddress = regexp.MustCompile(`"address":"(127\.0\.0\.1:[0-9]+)","network":"tcp"`)

// start has a shell go behind the fence before it becomes the daemon.
func (d *daemon) start() {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.target.Socket = filepath.Join(d.dir, "s")
	d.cmd = exec.Command("sh", "-c", `for door in $0; do echo $$ > "$door" || exit; done; exec "$@"`, d.fence.doors(), filepath.Join(d.dir, "toolhost"),
		"serve", "--config", filepath.Join(d.dir, "toolhost.yaml"), "--socket", d.target.Socket, "--listen", "127.0.0.1:0")
	d.cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "TOOLHOST_") })
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(d.exited)
		_ = d.cmd.Wait() // its state tells
	}()
	d.t.Cleanup(d.end)
	if d.client, err = client.New(client.Options{Socket: d.target.Socket}); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(d.client.Close)
	wait.Until(d.t, "the daemon takes calls, and says where", func() bool {
		return d.down() || d.client.Ready(d.t.Context()) == nil && tcpAddress.MatchString(d.log())
	})
	if d.down() {
		d.t.Fatalf("the daemon does not start:\n%s", d.log())
	}
	d.target.TCP = tcpAddress.FindStringSubmatch(d.log())[1]
	d.target.Token = strings.TrimSpace(read(d.t, filepath.Join(d.dir, "state", "token")))
}

func (d *daemon) pid() int { return d.cmd.Process.Pid }

func (d *daemon) down() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

func (d *daemon) log() string { return read(d.t, filepath.Join(d.dir, "log")) }

// end is for a test that has failed; the log's last lines tell of it.
func (d *daemon) end() {
	if !d.down() {
		_ = d.cmd.Process.Kill()
		<-d.exited
	}
	if d.t.Failed() {
		lines := strings.Split(d.log(), "\n")
		d.t.Logf("%s; its last lines:\n%s", d.cmd.ProcessState, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

// look notes what memory the daemon has now.
func (d *daemon) look() {
	d.peak = max(d.peak, d.memory("VmHWM:"))
	bytes, _ := d.fence.used()
	d.counts = max(d.counts, bytes)
}

// memory is a line of proc_pid_status(5); 0 of a daemon that is down.
func (d *daemon) memory(name string) int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.pid()))
	_, rest, _ := bytes.Cut(raw, []byte(name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}

// processor is the CPU time that the daemon has had (proc_pid_stat(5), in
// hundredths of a second).
func (d *daemon) processor() time.Duration {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.pid()))
	_, rest, _ := bytes.Cut(raw, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * 10 * time.Millisecond
}

// files are those that the daemon has open, but for users of calls: of these it
// keeps as many as ever ran at once.
func (d *daemon) files() open {
	now := open{}
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.pid()))
	for _, path := range paths {
		if to, _ := os.Readlink(path); !strings.Contains(to, "/users/") {
			kind, _, _ := strings.Cut(to, ":[") // of a socket or pipe, without its number
			now[kind]++
		}
	}
	return now
}

// rest waits until the daemon has given back what it may not keep, and gives what it has.
func (d *daemon) rest(most int) (rss int64, now open) {
	for end := time.Now().Add(restBound); ; time.Sleep(100 * time.Millisecond) {
		rss, now = d.memory("VmRSS:"), d.files()
		if rested(rss, now, most) || time.Now().After(end) {
			return rss, now
		}
	}
}

func rested(rss int64, now open, most int) bool {
	return rss <= restingMemory && now.count() <= most
}

// open are files by what they are.
type open map[string]int

func (o open) count() (n int) {
	for _, of := range o {
		n += of
	}
	return n
}

// stop asks the daemon to end and gives what that took.
func (d *daemon) stop() (took time.Duration) {
	d.t.Helper()
	began := time.Now()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-time.After(4 * stopBound):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines tell why
		<-d.exited
		d.t.Errorf("it does not stop")
	}
	return time.Since(began)
}

// left is what a daemon that has stopped has left behind.
func (d *daemon) left() (found []string) {
	found = d.fence.left()
	if n := len(processes.WithEnvironment("TOOLHOST_MARK=" + d.mark)); n > 0 {
		found = append(found, fmt.Sprintf("%d processes of tools", n))
	}
	if _, err := os.Lstat(d.target.Socket); err == nil {
		found = append(found, d.target.Socket)
	}
	sockets, _ := filepath.Glob(filepath.Join(d.dir, "run", "*", "*plugin-dir*"))
	found = append(found, sockets...)
	if now := read(d.t, "/proc/self/mounts"); now != d.mounts {
		found = append(found, "mounts: "+now)
	}
	return found
}
