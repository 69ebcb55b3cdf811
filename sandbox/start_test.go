package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

func TestExitStatusIsTheToolsOwn(t *testing.T) {
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		p := w.plan(Policy{Tier: tier}, Task{})
		if status := w.run(p, "exit7").status(); !status.Exited() || status.ExitStatus() != 7 {
			t.Errorf("%s: status %#x, want exit 7", tier, status)
		}
		if status := w.run(p, "killself").status(); !status.Signaled() || status.Signal() != syscall.SIGKILL {
			t.Errorf("%s: status %#x, want SIGKILL", tier, status)
		}
	}
}

func TestACallIsAUserOfItsOwn(t *testing.T) {
	w := enter(t)
	c := w.run(w.plan(Policy{}, Task{}), "do", "id:", "host:")
	if got := c.output(); got != "1000 1000 1000 1000 []\ntoolhost\n" {
		t.Errorf("the tool is %q", got)
	}
	if c.UID() == os.Geteuid() && w.f.find(FeatureOwnUID).State == Yes {
		t.Errorf("its user is the caller's, %d", c.UID())
	}
	other := w.run(w.plan(Policy{}, Task{}), "echo")
	if c.UID() == other.UID() && w.f.find(FeatureOwnUID).State == Yes {
		t.Errorf("two calls are both user %d", c.UID())
	}
}

func TestToolCannotSignalItsLauncher(t *testing.T) {
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		c := w.run(w.plan(Policy{Tier: tier}, Task{}), "killinit")
		if got := c.output(); !strings.HasPrefix(got, "still here") {
			t.Errorf("tool says %q", got)
		}
		if status := c.status(); status != 0 {
			t.Errorf("status %#x, want 0: the launcher's end would have killed it", status)
		}
		if closed(c.gone) {
			t.Error("the launcher did not survive its tool's signals")
		}
	}
}

// A tool begins with nothing blocked or ignored, also if its host was started
// by nohup or a shell's &.
func TestSignalsAreAtTheirDefault(t *testing.T) {
	inherited := []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP}
	signal.Ignore(inherited...)
	defer signal.Reset(inherited...)
	w := enterAny(t)
	c := w.start(w.plan(Policy{Tier: TierNone}, Task{}), "", nil, func(s *Spec) {
		s.Path, s.Args = "/bin/cat", []string{"cat", "/proc/self/status"}
	})
	must(t, c.err)
	status := c.output()
	for _, mask := range []string{"SigBlk", "SigIgn", "SigCgt"} {
		if want := mask + ":\t" + strings.Repeat("0", 16) + "\n"; !strings.Contains(status, want) {
			t.Errorf("want %q in %s", want, status)
		}
	}
}

func TestKillEndsTheTree(t *testing.T) {
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		c := w.run(w.plan(Policy{Tier: tier}, Task{}), "tree")
		if got := c.line(); got != "sleeping\n" {
			t.Fatalf("the grandchild says %q", got)
		}
		c.Kill()
		c.Kill()
		c.waitGone()
		if got := c.output(); got != "" {
			t.Errorf("output %q after the end", got)
		}
		if _, ok := <-c.Exited(); ok {
			t.Error("an exit of what was killed with its launcher")
		}
		c.Kill() // of what is gone
	}
}

func TestTimerEndsTheTreeWithoutTheHost(t *testing.T) {
	eachTimer(t, func(t *testing.T, w *world, p *Plan, timer func(*Spec)) {
		c := w.start(p, "tree", nil, timer)
		c.line()
		must(t, c.SetTimer(time.Millisecond))
		c.waitGone()
		c = w.start(p, "sleep", nil, func(s *Spec) { timer(s); s.Timer = 100 * time.Millisecond })
		must(t, c.err)
		c.waitGone()
		if err := c.SetTimer(time.Hour); err == nil {
			t.Error("moved the timer of a launcher that is gone")
		}
	})
}

// eachTimer is for one that the launcher is told of, and one that host and launcher share.
func eachTimer(t *testing.T, test func(t *testing.T, w *world, p *Plan, timer func(*Spec))) {
	for name, movable := range map[string]bool{"told": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			w := enter(t)
			test(t, w, w.plan(Policy{}, Task{}), func(s *Spec) { s.Movable = movable })
		})
	}
}

// A timer that is moved away does not fire; one of 0 or less fires at once.
func TestTimerIsMoved(t *testing.T) {
	eachTimer(t, func(t *testing.T, w *world, p *Plan, timer func(*Spec)) {
		c := w.start(p, "echo", nil, timer)
		must(t, c.SetTimer(wait.Bound))
		c.line()
		c.echoes()
		must(t, c.SetTimer(-time.Second))
		c.waitGone()
	})
}

// A timer that is moved for each call wakes nobody until it is over.
func TestAMovableTimerWakesNobody(t *testing.T) {
	w := enter(t)
	c := w.start(w.plan(Policy{}, Task{}), "echo", nil, func(s *Spec) { s.Movable = true })
	c.line()
	status := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
		must(t, err)
		return string(text)
	}
	wakes := func() string {
		wait.Until(t, "the launcher to wait", func() bool { return strings.Contains(status(), "State:\tS") })
		_, count, _ := strings.Cut(status(), "\nvoluntary_ctxt_switches:")
		return strings.Fields(count)[0]
	}
	before := wakes()
	for range 100 {
		must(t, c.SetTimer(time.Hour))
	}
	c.echoes()
	if after := wakes(); after != before {
		t.Errorf("the launcher has waited %s times, %s before its timer was moved", after, before)
	}
	c.Kill()
	c.waitGone()
}

// However often the timer is moved while the launcher takes nothing, the newest
// value counts, and no other.
func TestTheNewestTimerCounts(t *testing.T) {
	eachTimer(t, func(t *testing.T, w *world, p *Plan, timer func(*Spec)) {
		c := w.start(p, "echo", nil, timer)
		c.line()
		move := func(many, last time.Duration) {
			must(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
			for range 5000 { // far more than its socket takes
				must(t, c.SetTimer(many))
			}
			must(t, c.SetTimer(last))
			must(t, syscall.Kill(c.PID(), syscall.SIGCONT))
		}
		move(time.Second, wait.Bound)
		other := w.start(p, "sleep", nil, func(s *Spec) { s.Timer = 2 * time.Second })
		must(t, other.err)
		other.waitGone() // by then the timer that no longer counts would have fired, too
		c.echoes()
		move(wait.Bound, -time.Second)
		c.waitGone()
	})
}

func TestSetupErrorIsTyped(t *testing.T) {
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		p := w.plan(Policy{Tier: tier}, Task{})
		c := w.start(p, "", nil, func(s *Spec) { s.Path = "/nonexistent/tool" })
		must(t, c.err)
		setup, ok := errors.AsType[*SetupError](c.Started(wait.Context(t)))
		if !ok || !setup.Executing() || !errors.Is(setup, syscall.ENOENT) {
			t.Errorf("error %v, want a SetupError of executing with ENOENT", setup)
		}
		if _, ok := <-c.Exited(); ok {
			t.Error("an exit of what never ran")
		}
		c.waitGone()
	}
	c := w.start(w.plan(Policy{}, Task{}), "", nil, func(s *Spec) { s.Dir = "/nonexistent" })
	must(t, c.err)
	wantError(t, c.Started(wait.Context(t)), "cannot execute", "no such file")
}

func TestStartedOfALauncherThatDied(t *testing.T) {
	w := enter(t)
	c := w.start(w.plan(Policy{}, Task{}), "sleep", nil, nil)
	must(t, c.err)
	c.Kill()
	c.waitGone()
	if err := c.Started(wait.Context(t)); err != nil && !errors.Is(err, ErrDiedAtBirth) {
		t.Errorf("error %v", err)
	}
}

func TestFoldersAreHandedOver(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	c := w.run(p, "do", "make:"+Workspace+"/file", "make:"+socketDir+"/socket", "make:"+socketDir+"/second")
	if got := c.output(); got != "ok\nok\nerror ENOSPC\n" {
		t.Errorf("the tool says %q", got)
	}
	wantInside(t, c.Workspace(), "file")
	if os.Geteuid() == 0 { // to others it is closed: see TestDial
		wantInside(t, c.SocketDir(), "socket")
	}
	if !p.Confined() {
		t.Error("not confined")
	}
	none := w.plan(Policy{Tier: TierNone}, Task{})
	c = w.run(none, "echo")
	if c.SocketDir() == nil || c.Workspace() != nil {
		t.Errorf("tier none: socket folder %v, workspace %v", c.SocketDir(), c.Workspace())
	}
	c = w.start(none, "echo", nil, func(s *Spec) { s.SocketDir = "" })
	must(t, c.err)
	must(t, c.Started(wait.Context(t)))
	if c.SocketDir() != nil {
		t.Error("a socket folder that was not asked for")
	}
}

// wantInside wants this file, of the tool's, in an O_PATH folder.
func wantInside(t *testing.T, dir *os.File, name string) {
	t.Helper()
	if dir == nil {
		t.Fatal("no folder was handed over")
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// A pids limit allows for the launcher's tasks, so their number is bounded.
func TestLauncherTasks(t *testing.T) {
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		for range 10 {
			c := w.run(w.plan(Policy{Tier: tier}, Task{}), "echo")
			c.line()
			tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.PID()))
			must(t, err)
			if len(tasks) > LauncherTasks {
				t.Fatalf("%s: the launcher has %d tasks, want at most %d", tier, len(tasks), LauncherTasks)
			}
			c.Kill()
		}
	}
}

// Without a PID namespace the launcher's end is not the tree's: it writes to
// the group's cgroup.kill instead, here a pipe.
func TestWithoutPIDNamespaceTheKillFileIsWritten(t *testing.T) {
	w := enterAny(t)
	r, kill := pipe(t)
	p := plan(t, Policy{Tier: TierNone}, w.f.Without(FeaturePIDNS), Task{})
	c := w.start(p, "wait", nil, func(s *Spec) {
		s.Timer = time.Millisecond
		s.KillFile = func() (*os.File, error) { return kill, nil }
	})
	must(t, c.err)
	must(t, c.Started(wait.Context(t)))
	c.waitGone()
	buf := make([]byte, 9)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "1" {
		t.Errorf("kill file got %q, %v", buf[:n], err)
	}
	if c.SocketDir() == nil {
		t.Error("no socket folder")
	}
	cause := errors.New("cause")
	c = w.start(p, "wait", nil, func(s *Spec) { s.KillFile = func() (*os.File, error) { return nil, cause } })
	if c.err != cause {
		t.Errorf("error %v, want that of the kill file", c.err)
	}
}

func TestEnvironmentAndDescriptorsAreWhatWasGiven(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	w := enter(t)
	for _, tier := range []string{TierNative, TierNone} {
		p := w.plan(Policy{Tier: tier}, Task{CPUPercent: 100})
		c := w.start(p, "do", []string{"env:", "fds:", "cwd:"}, func(s *Spec) {
			// Else Go's runtime keeps files of its cgroup open where it sees one.
			s.Env, s.Dir = append(s.Env, "GODEBUG=containermaxprocs=0"), "/usr"
		})
		must(t, c.err)
		if got, want := c.output(), roleVar+"=do GODEBUG=containermaxprocs=0\n[0 1 2]\n/usr\n"; got != want {
			t.Errorf("%s: %q, want %q", tier, got, want)
		}
	}
	p := w.plan(Policy{}, Task{})
	r, extra := pipe(t)
	c := w.start(p, "do", []string{"fds:"}, func(s *Spec) { s.Extra = []*os.File{extra, r} })
	must(t, c.err)
	if got := c.output(); got != "[0 1 2 3 4]\n" {
		t.Errorf("with two extra files: %q", got)
	}
}

func TestTierNoneSeesTheHost(t *testing.T) {
	w := enterAny(t)
	dir := realTemp(t)
	mustWrite(t, dir+"/file", "content")
	w.wantDo(w.plan(Policy{Tier: TierNone}, Task{}), "read:"+dir+"/file", "content", "make:"+dir+"/new", "ok")
	info, err := os.Stat(dir + "/new")
	must(t, err)
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() {
		t.Errorf("owner %d", st.Uid)
	}
}

// The lifeline is the tree's: when the host's end of it closes, all ends.
func TestAbandonEndsTheTree(t *testing.T) {
	w := enter(t)
	stdout, fromTool := pipe(t)
	stdin, _ := pipe(t)
	p, err := w.Start(wait.Context(t), w.spec(w.plan(Policy{}, Task{}), "tree", nil, stdin, fromTool))
	must(t, err)
	must(t, p.Started(wait.Context(t)))
	_ = fromTool.Close()
	c := &call{Process: p, t: t, stdout: stdout}
	c.line()
	p.Abandon()
	c.waitGone()
	if got := c.output(); got != "" {
		t.Errorf("output %q after the end", got)
	}
}

// A launcher that dies once it was about to start the tool leaves it open whether that ran.
func TestDiedAtBirth(t *testing.T) {
	var none, begun, given Process
	begun.begun = true
	given.given.Store(true)
	for p, uncertain := range map[*Process]bool{&none: false, &begun: true, &given: true} {
		if err := p.diedAtBirth(); !errors.Is(err, ErrDiedAtBirth) || errors.Is(err, ErrUncertain) != uncertain {
			t.Error(err)
		}
	}
}
