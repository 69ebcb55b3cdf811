package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// readers is how many there are at once; TOOLHOST_SOAK_READERS asks for more.
func readers() int {
	if n, err := strconv.Atoi(os.Getenv("TOOLHOST_SOAK_READERS")); err == nil {
		return n
	}
	return 200
}

// Readers that wait, and one that takes nothing, are nothing to the calls.
func TestManyReaders(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	watched := w.begin()
	ctx, cancel := context.WithCancel(wait.Context(t))
	var watching, seen sync.WaitGroup
	seen.Add(readers())
	for range readers() {
		watching.Go(func() {
			var once sync.Once
			_ = w.client.Watch(ctx, watched, 0, func(api.Record) bool { once.Do(seen.Done); return true })
		})
	}
	seen.Wait()
	defer watching.Wait()
	defer cancel()

	file := filepath.Join(w.dir, "go")
	loud := w.begin()
	for _, id := range []string{watched, loud} {
		defer w.neverRead(id).Close()
	}
	w.letGo(file)
	text := strings.Repeat("0123456789abcdef", 1<<10)
	for n := range 5 {
		w.mustRun(loud, "work", workArgs{Text: text + strconv.Itoa(n), Repeat: 500})
		w.mustRun(watched, "lines", map[string]string{"text": strconv.Itoa(n)})
	}
	if used := d.memory(); used > 400<<20 {
		t.Errorf("the daemon has %d MiB", used>>20)
	}
	t.Logf("%d MiB with %d readers", d.memory()>>20, readers())
}

// neverRead opens a turn's stream and takes nothing of it.
func (w *world) neverRead(turnID string) net.Conn {
	w.t.Helper()
	return w.dial(fmt.Sprintf("GET /api/turns/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", turnID))
}

// dial sends a request and leaves its answer unread.
func (w *world) dial(request string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("unix", w.Socket)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// memory is what the daemon has in RAM.
func (p *process) memory() (bytes int64) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			bytes = kib << 10
		}
	}
	return bytes
}

// idleMemory is what a daemon may have in RAM that does nothing, with its helper.
const idleMemory = 32 << 20

// A daemon that has nothing to do is small, also after it had.
func TestIdleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes several times the memory")
	}
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	w.mustRun(w.begin(), "lines", map[string]string{"text": "x"})
	small := func() bool { return d.resident() < idleMemory }
	wait.Until(t, "the new daemon is small", small)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			id := w.begin()
			for n := range 25 {
				o := w.run(id, api.Call{ID: strconv.Itoa(n), Tool: "lines", Arguments: arguments(t, map[string]string{"text": strconv.Itoa(n)})})
				if o.err != nil || !o.result.OK() {
					t.Errorf("%+v", o)
				}
			}
		})
	}
	calls.Wait()
	wait.Until(t, "the daemon is small again", small)
}

// resident is the memory of the daemon and its children, with all pages that
// others, such as this test, use as well.
func (p *process) resident() (bytes int64) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	children, err := filepath.Glob("/proc/" + pid + "/task/*/children")
	if err != nil || len(children) == 0 {
		p.t.Fatalf("no threads of process %s: %v", pid, err)
	}
	pids := []string{pid}
	for _, path := range children {
		raw, _ := os.ReadFile(path) // the thread may have ended
		pids = append(pids, strings.Fields(string(raw))...)
	}
	for _, pid := range pids {
		raw, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		for line := range strings.Lines(string(raw)) {
			if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
				kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				bytes += kib << 10
			}
		}
	}
	if bytes == 0 {
		p.t.Fatal("/proc tells nothing of memory (smaps_rollup)")
	}
	return bytes
}
