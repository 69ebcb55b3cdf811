package daemon

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// unready wants the daemon to say so, with all parts.
func (p *process) unready(parts ...string) {
	p.t.Helper()
	var refused *api.Error
	wait.Until(p.t, "the daemon answers", func() bool {
		err := p.client.Ready(p.t.Context())
		var ok bool
		refused, ok = err.(*api.Error)
		return ok || err == nil
	})
	if refused == nil || refused.Status != http.StatusServiceUnavailable {
		p.t.Fatalf("not unready: %+v", refused)
	}
	for _, part := range parts {
		if !strings.Contains(refused.Error(), part) {
			p.t.Errorf("unready: %q, want %q in it", refused, part)
		}
	}
}

// A daemon whose limits let it make no call is not ready, and says why; once it
// can make calls it is.
func TestUnreadyWithoutDescriptors(t *testing.T) {
	w := newWorld(t, "admission: {sandboxes: false}\n") // or the call has one that is there
	d := w.daemon()
	pid := d.cmd.Process.Pid
	turn := w.begin()
	w.mustRun(turn, "work", workArgs{Text: "x"})
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(cur uint64) {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: cur, Max: was.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(len(entries) + 8))
	w.outcome(w.launch(turn, "work", workArgs{Text: "x"}))
	d.unready("raise the limit of open files")
	limit(was.Cur)
	d.waitReady()
	w.mustRun(turn, "work", workArgs{Text: "x"})
}

// Without its state folder a daemon says so at once, and takes no calls whose record nobody
// could find.
func TestUnreadyWithoutItsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	d := w.daemon()
	turn, gate := w.begin(), filepath.Join(w.dir, "go")
	done := w.launch(turn, "work", workArgs{For: gate})
	away := w.State + ".away"
	if err := os.Rename(w.State, away); err != nil {
		t.Fatal(err)
	}
	d.unready(w.State, "was removed or replaced", "restart", "the state folder of the daemon is there, writable and has room")
	w.letGo(gate)
	if o := w.outcome(done); o.err != nil || !o.result.Unrecorded {
		t.Errorf("the call that ran: %+v", o)
	}
	if _, err := w.client.Begin(wait.Context(t), api.TurnSpec{}); err == nil {
		t.Error("a turn begins off the record")
	}
	d.waitLog("new calls are refused, since nothing can go on record")
	if err := os.Rename(away, w.State); err != nil {
		t.Fatal(err)
	}
	d.waitReady()
	w.mustRun(w.begin(), "work", workArgs{})
	d.waitLog("the journal is back where it was")
}

func TestUnreadyFromTheStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (others may lack features, too)")
	}
	w := newWorld(t, "")
	d := w.command()
	d.cmd.Path, d.cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 512 && exec "$0"`, os.Args[0]}
	if _, err := exec.LookPath("/bin/sh"); err != nil {
		t.Skip("missing: /bin/sh")
	}
	d.start()
	d.unready("raise the host's hard limit of open files")
}
