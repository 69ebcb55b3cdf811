package supervisor_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// awaitSpares waits until so many sandboxes wait.
func awaitSpares(t *testing.T, host testHost, n int) {
	t.Helper()
	eventually(t, "the sandboxes wait", func() bool { return host.Host().Sandboxes.Waiting >= n })
}

func taken(host testHost) int64 { return host.Host().Sandboxes.Taken }

// Behind a call sandboxes wait for others of the same limits and grants, whatever they run,
// with whatever arguments and environment; each serves one.
func TestASandboxWaitsForTheNextCall(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{})
	first := shell("echo here > mine; echo $WORD; ls")
	first.Env = []string{"WORD=first"}
	if got := call(t, host, first); got.Text() != "first\nmine\n" {
		t.Fatalf("%s: %q", got.Status, got.Text())
	}
	n := int64(times(3, 20, 200))
	for range n {
		awaitSpares(t, host, 2)
		next := shell("echo $WORD; ls; read line; echo $line")
		next.Command.Stdin, next.Env = strings.NewReader("typed"), []string{"WORD=next"}
		got := call(t, host, next)
		if got.Text() != "next\ntyped\n" || got.Instance != api.InstanceFresh {
			t.Fatalf("%s: %q of a %s process", got.Status, got.Text(), got.Instance)
		}
	}
	// One is passed over where the machine has other mounts than when it was made.
	if got := taken(host); got > n || got < n/2 {
		t.Errorf("%d of %d calls have taken one", got, n)
	}
	awaitSpares(t, host, 2)
	echo := request("workspace", `{}`) // a plugin is another program, and has other files
	wantServed(t, call(t, host, echo), api.InstanceFresh, 1)
	before := taken(host)
	for try := 0; taken(host) == before; try++ {
		if try == 5 { // as many are hardly passed over
			t.Fatal("no call of a plugin has taken one")
		}
		awaitSpares(t, host, 4)
		wantServed(t, call(t, host, echo), api.InstanceFresh, 1)
	}
	if taken(host) != before+1 {
		t.Errorf("%d sandboxes were taken, want one more than %d", taken(host), before)
	}
}

// A call that another sandbox would be made for has that.
func TestASandboxFitsItsCall(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{})
	plugin := request("count", `{}`)
	call(t, host, shell("exit 0"))
	awaitSpares(t, host, 2)
	call(t, host, plugin)
	awaitSpares(t, host, 4)
	dir := t.TempDir()
	for name, change := range map[string]func(*supervisor.Request){
		"memory":    func(r *supervisor.Request) { r.Limits.MemoryBytes = 100 << 20 },
		"processes": func(r *supervisor.Request) { r.Limits.Pids = 7 },
		"files":     func(r *supervisor.Request) { r.Limits.OpenFiles = 99 },
		"workspace": func(r *supervisor.Request) { r.Limits.WorkspaceBytes = 1 << 20 },
		"share":     func(r *supervisor.Request) { r.Share = supervisor.Share{Key: "other", MemoryBytes: 1 << 30} },
		"strict":    func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Strict: true} },
		"network":   func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Network: sandbox.NetworkHost} },
		"secrets":   func(r *supervisor.Request) { r.Secrets = []supervisor.Secret{{Variable: "KEY", Value: "0123456789"}} },
		"data":      func(r *supervisor.Request) { r.Lock.File = filepath.Join(dir, "lock") },
		"keep":      func(r *supervisor.Request) { r.Tool, r.Command, r.Keep = plugin.Tool, nil, &supervisor.Keep{} },
		"tier":      func(r *supervisor.Request) { r.Sandbox = &sandbox.Policy{Tier: sandbox.TierNone} },
	} {
		t.Run(name, func(t *testing.T) {
			r := shell("exit 0")
			change(&r)
			wantStatus(t, call(t, host, r), api.StatusOK)
			if taken(host) != 0 {
				t.Error("it has had one that was made for another")
			}
		})
	}
}

// What is behind a granted path is looked at when a sandbox is taken.
func TestASandboxShowsWhatIsThereNow(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs a file system with id-mapped mounts for the grants, which the VM does not have")
	}
	needShell(t)
	host := newHost(t, supervisor.Config{})
	dir := t.TempDir()
	granted := filepath.Join(dir, "granted")
	show := func(name string) {
		t.Helper()
		to := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, name), nil, 0o644), os.RemoveAll(granted), os.Rename(to, granted)); err != nil {
			t.Fatal(err)
		}
	}
	r := shell("ls " + granted)
	r.Sandbox = &sandbox.Policy{Read: []string{granted}}
	for _, name := range []string{"one", "two", "three"} {
		show(name)
		for range 3 { // with a sandbox of its own, and with one that has waited
			if got := call(t, host, r); got.Text() != name+"\n" {
				t.Fatalf("%s: %q, want %q\n%s", got.Status, got.Text(), name, got.Message)
			}
			eventually(t, "another waits", func() bool { return host.Host().Sandboxes.Waiting > 1 })
		}
	}
	if taken(host) == 0 {
		t.Error("no call has had a sandbox that waited")
	}
}

// A sandbox that waited shows no mount that has gone since, and has each that has come.
func TestASandboxAndMountsThatCome(t *testing.T) {
	needShell(t)
	const inside = "SUPERVISOR_TEST_MOUNTS"
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	if os.Getenv(inside) == "" {
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), inside+"=1"), &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	host := newHost(t, supervisor.Config{})
	dir, other := t.TempDir(), t.TempDir()
	point := filepath.Join(dir, "point")
	if err := errors.Join(os.Mkdir(point, 0o755), os.WriteFile(filepath.Join(other, "mounted"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	mount := func() error { return syscall.Mount(other, point, "", syscall.MS_BIND, "") }
	unmount := func() error { return syscall.Unmount(point, 0) }
	r := shell("ls " + point)
	r.Sandbox = &sandbox.Policy{Read: []string{dir}}
	want := func(text string) {
		t.Helper()
		if got := call(t, host, r); got.Text() != text {
			t.Fatalf("%s: %q, want %q\n%s", got.Status, got.Text(), text, got.Message)
		}
	}
	for range times(2, 5, 50) {
		eventually(t, "nothing waits", func() bool { host.EndIdle(); return host.Host().Sandboxes.Waiting == 0 })
		want("")
		awaitSpares(t, host, 2)
		want("")
		awaitSpares(t, host, 2)
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		want("mounted\n")
		eventually(t, "one waits that shows it", func() bool { return host.Host().Sandboxes.Waiting > 2 })
		if err := unmount(); err != nil {
			t.Fatal(err)
		}
		waits := r
		reader, writer := io.Pipe()
		waits.Command = &supervisor.Command{Argv: []string{"/bin/sh", "-c", "echo begun; read line"}, Stdin: reader}
		c := host.Start(t.Context(), waits)
		eventually(t, "it runs", func() bool { now, ok := c.Current(); return ok && now.Pids > 2 })
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Close()
		<-c.Gone()                                                                                                // a sandbox that is made behind it would have the mount
		eventually(t, "nothing waits", func() bool { host.EndIdle(); return host.Host().Sandboxes.Waiting == 0 }) // that was made before
		call(t, host, shell("exit 0"))
		eventually(t, "what is made behind that waits", func() bool { return host.Host().Sandboxes.Waiting >= 2 })
		if err := unmount(); err != nil {
			t.Fatal(err)
		}
	}
	want("")
	if taken(host) == 0 {
		t.Error("no call has had a sandbox that waited")
	}
}

// One whose launcher has died is nobody's failure.
func TestASandboxDiesBeforeItsCall(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{})
	for range times(3, 20, 100) {
		wantStatus(t, call(t, host, shell("exit 0")), api.StatusOK)
		eventually(t, "two wait", func() bool { return len(sparePIDs(t, host)) == 2 })
		for _, pid := range killSpares(t, host) {
			// Out of its group it is a little earlier, which is not yet seen from outside.
			eventually(t, "it is reaped", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		}
	}
}

// A call that comes while one dies has either that death for its own, or none.
func TestASandboxIsTakenWhileItDies(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{})
	for range times(3, 20, 100) {
		wantStatus(t, call(t, host, shell("exit 0")), api.StatusOK)
		eventually(t, "two wait", func() bool { return len(sparePIDs(t, host)) == 2 })
		var both sync.WaitGroup
		both.Go(func() { killSpares(t, host) })
		got := call(t, host, shell("echo works"))
		both.Wait()
		if got.Text() != "works\n" && got.Status != api.StatusCrashed && got.Status != api.StatusStartFailed {
			t.Fatalf("%s: %q, %s", got.Status, got.Text(), got.Message)
		}
		eventually(t, "nothing waits", func() bool {
			host.EndIdle() // also what comes behind the call
			return len(sparePIDs(t, host)) == 0
		})
	}
}

// sparePIDs are the launchers that wait.
func sparePIDs(t *testing.T, host testHost) []int { return processesIn(t, host, "c-spare-*") }

func killSpares(t *testing.T, host testHost) []int {
	pids := sparePIDs(t, host)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return pids
}

// They end with the supervisor's configuration, and with the supervisor.
func TestSandboxesThatWaitEnd(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{Totals: cgroup.Limits{MemoryBytes: 1 << 30}})
	call(t, host, shell("exit 0"))
	awaitSpares(t, host, 2)
	eventually(t, "their launchers wait", func() bool { return len(sparePIDs(t, host)) == 2 })
	eventually(t, "they are gone", func() bool { host.EndIdle(); return len(sparePIDs(t, host)) == 0 })
	none := newHost(t, nothingWaits)
	call(t, none, shell("exit 0"))
	if n := none.Host().Sandboxes.Waiting; n != 0 {
		t.Errorf("%d wait where none may", n)
	}
}

// They are few, whatever is called.
func TestSandboxesThatWaitAreFew(t *testing.T) {
	needShell(t)
	host := newHost(t, supervisor.Config{Prestart: supervisor.PrestartBudget{Processes: 3}, Admission: supervisor.Admission{Running: 8, Wait: time.Minute}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range int64(4) {
				r := shell("exit 0")
				r.Limits.MemoryBytes = (int64(i)*4 + n + 64) << 20
				wantStatus(t, call(t, host, r), api.StatusOK)
				if waiting := host.Host().Sandboxes.Waiting; waiting > 3 {
					t.Errorf("%d wait", waiting)
				}
			}
		})
	}
	all.Wait()
	if pids := sparePIDs(t, host); len(pids) > 3 {
		eventually(t, "those without a place are gone", func() bool { return len(sparePIDs(t, host)) <= 3 })
	}
}
