package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Root has everything, on every kernel that is tested: a feature that should
// exist is never silently missing.
func TestProbeFindsAll(t *testing.T) {
	w := enterAny(t)
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (others may lack any feature)")
	}
	for _, found := range w.f.Findings() {
		if found.Optional() && landlockABI() < newestLandlock {
			continue
		}
		if found.State != Yes {
			t.Errorf("%s is %v: %s; %s", found.Feature, found.State, found.Reason, found.Remedy)
		}
	}
	if !w.f.lifetimes.pidNamespace || !w.f.lifetimes.proc {
		t.Errorf("without a sandbox: %+v", w.f.lifetimes)
	}
	if !w.f.Runtime("/usr/bin/env") || !w.f.Runtime("/bin/sh") || w.f.Runtime("/etc/passwd") || w.f.Runtime("/home") {
		t.Error("the runtime is /usr and what belongs to it")
	}
}

func TestProbeIsBoundedByItsContext(t *testing.T) {
	w := enterAny(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cause")
	cancel(cause)
	f, err := w.Probe(ctx, nil)
	if err == nil {
		return // it was faster
	}
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	for _, found := range f.Findings() {
		if found.State == Yes {
			t.Errorf("%s is said to be there though nothing was tried", found.Feature)
		}
	}
}

// Where nothing can be born, as in a group that was killed, Probe says so.
func TestProbeOfADeadGroup(t *testing.T) {
	w := enterAny(t)
	cause := errors.New("cause")
	_, err := w.Probe(wait.Context(t), func(func(*os.File, []*os.File, []*os.File) error) error { return ErrDiedAtBirth })
	if !errors.Is(err, ErrDiedAtBirth) {
		t.Errorf("error %v", err)
	}
	f, err := w.Probe(wait.Context(t), func(func(*os.File, []*os.File, []*os.File) error) error { return cause })
	if !errors.Is(err, cause) || f.find(FeatureRoot).State != Unknown {
		t.Errorf("error %v, finding %+v", err, f.find(FeatureRoot))
	}
}

// What a trial could do although it must not is never said to be enforced.
func TestContradictions(t *testing.T) {
	for bit, feature := range contradictions {
		f := complete(true)
		if err := f.contradict(syscall.WaitStatus(1 << bit << 8)); err == nil {
			t.Error("no error")
		}
		for _, found := range f.Findings() {
			if (found.State == No) != (found.Feature == feature) {
				t.Errorf("bit %d: %s is %v", bit, found.Feature, found.State)
			}
		}
	}
	f := complete(true)
	_ = f.contradict(syscall.WaitStatus(syscall.SIGSYS))
	for _, feature := range contradictions {
		if f.find(feature).State != No {
			t.Errorf("%s after a death by signal: %v", feature, f.find(feature).State)
		}
	}
}

func TestBlame(t *testing.T) {
	for step, feature := range map[string]string{
		"bring lo up": FeatureNetNS, "unshare the cgroup namespace": FeatureCgroupNS, "set the host name": FeatureUTSNS,
		"mount proc at /proc": FeatureProc, "mask /proc/keys": FeatureProc, "drop capabilities": FeatureCapabilities,
		"apply Landlock": FeatureLandlock, "install the system call filter": FeatureSeccomp, "mount the new root": FeatureRoot,
	} {
		f := complete(true)
		(&Host{}).blame(t.Context(), &f, &SetupError{step, syscall.EPERM}, nil)
		for _, found := range f.Findings() {
			if want := map[bool]State{true: No, false: Unknown}[found.Feature == feature]; found.State != want || found.Remedy == "" {
				t.Errorf("%s: %s is %v with remedy %q", step, found.Feature, found.State, found.Remedy)
			}
		}
	}
}

// What the host itself lacks is not a missing feature.
func TestBlameOfTheHost(t *testing.T) {
	for _, err := range []error{
		&SetupError{wire.StepLimits, syscall.EPERM}, &SetupError{wire.StepClone, syscall.EMFILE}, &SetupError{"mount the new root", syscall.ENFILE},
		&SetupError{wire.StepClone, syscall.EAGAIN}, errors.New("cannot make a socket pair"),
		Spec{Plan: &Plan{user: true}}.explain(&SetupError{wire.StepClone, syscall.ENOSPC}),
	} {
		f := complete(true)
		(&Host{}).blame(t.Context(), &f, err, nil)
		if f.Untried() == nil {
			t.Errorf("%v: taken for what this host offers", err)
		}
		for _, found := range f.Findings() {
			if found.State == No {
				t.Errorf("%v: %s is missing", err, found.Feature)
			}
		}
	}
	wantError(t, &SetupError{wire.StepLimits, syscall.EPERM}, "raise the host's hard limit of open files")
	wantError(t, &SetupError{wire.StepClone, syscall.EAGAIN}, "pids.max")
}

func TestClosingTheHostLeavesCallsAlone(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	c := w.run(p, "echo")
	c.line()
	must(t, w.Close())
	_, err := c.stdin.WriteString("hello\n")
	must(t, err)
	if got := c.line(); got != "hello\n" {
		t.Errorf("echo %q", got)
	}
	must(t, c.stdin.Close())
	if status := c.status(); status != 0 {
		t.Errorf("status %#x", status)
	}
	if _, err := w.Start(wait.Context(t), Spec{Plan: p}); err == nil {
		t.Error("started by a closed host")
	}
	if err := w.Restart(); err == nil {
		t.Error("restarted a closed host")
	}
	must(t, w.Close())
}

func zygotePID(t *testing.T) (pid int) {
	t.Helper()
	wait.Until(t, "there is one zygote", func() bool { // whose name is there a little later than it
		pids := zygotes(t)
		if len(pids) == 1 {
			pid = pids[0]
		}
		return len(pids) == 1
	})
	return pid
}

func TestADeadZygoteIsReplaced(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	c := w.run(p, "echo")
	c.line()
	old, pid := w.z, zygotePID(t)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	<-old.gone
	if status := w.run(p, "exit7").status(); status.ExitStatus() != 7 {
		t.Errorf("status %#x", status)
	}
	if now := zygotePID(t); now == pid {
		t.Error("the zygote is the dead one")
	}
	_, err := c.stdin.WriteString("hello\n") // what runs does not depend on it
	must(t, err)
	if got := c.line(); got != "hello\n" {
		t.Errorf("echo %q", got)
	}
	must(t, w.Restart())
	if status := w.run(p, "exit7").status(); status.ExitStatus() != 7 {
		t.Errorf("status %#x after Restart", status)
	}
}

// TestAZygoteThatIsDeadUnnoticed: a start that finds out does not ask it again.
func TestAZygoteThatIsDeadUnnoticed(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	if status := w.run(p, "exit7").status(); status.ExitStatus() != 7 {
		t.Fatalf("status %#x", status)
	}
	must(t, syscall.Kill(zygotePID(t), syscall.SIGSTOP)) // so that its end is not noticed
	must(t, w.z.conn.CloseWrite())
	if status := w.run(p, "exit7").status(); status.ExitStatus() != 7 {
		t.Errorf("status %#x", status)
	}
}

func TestManyStartsAtOnce(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	const calls = 50
	var all sync.WaitGroup
	started := make([]*Process, calls)
	for i := range calls {
		all.Go(func() {
			c, err := w.Start(wait.Context(t), Spec{
				Plan: p, Path: trialProgram, Args: []string{"trial", wire.ModeTrial, "/"}, Dir: "/",
				Stdio: [3]*os.File{null, null, null}, Timer: wait.Bound,
			})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Started(wait.Context(t)); err != nil {
				t.Error(err)
			}
			if status := <-c.Exited(); status != 0 {
				t.Errorf("status %#x", status)
			}
			started[i] = c
		})
	}
	all.Wait()
	users := map[int]bool{}
	for _, c := range started {
		if c != nil {
			users[c.UID()] = true
			c.Kill()
			c.Release()
		}
	}
	if len(users) != calls && w.f.find(FeatureOwnUID).State == Yes {
		t.Errorf("%d calls were %d users", calls, len(users))
	}
}

// A start that is given up leaves no process, no descriptor and no user: also
// where its group is killed in the middle of the birth.
func TestCancelledStartsLeaveNothing(t *testing.T) {
	const starts = 300
	w := enter(t)
	p := w.plan(Policy{}, Task{})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	groups := newGroups(t)
	zygote, self := zygotePID(t), os.Getpid()
	ours, its := descriptors(t, self), descriptors(t, zygote)
	cause := errors.New("cause")
	running := 0
	for i := range starts {
		dir, kill := groups.add()
		// Some end before the fork, some after it, some between.
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i%100)*50*time.Microsecond, cause)
		spec := Spec{
			Plan: p, Path: "/tool", Args: []string{"tool"}, Env: []string{roleVar + "=sleep"}, Dir: "/", Stdio: [3]*os.File{null, null, null}, Timer: wait.Bound,
			Into: func(birth func(*os.File, []*os.File, []*os.File) error) error {
				if i%100 == 0 {
					<-ctx.Done()
				}
				return birth(dir, nil, nil)
			},
		}
		c, err := w.Start(ctx, spec)
		kill()
		switch {
		case err == nil:
			running++
			c.Kill()
			c.Release()
		case !errors.Is(err, cause):
			t.Errorf("error %v", err)
		}
		cancel()
	}
	if running == starts {
		t.Error("none was cancelled")
	}
	wait.Until(t, "no launcher is left", func() bool { return len(children(t, zygote, "")) == 0 })
	groups.remove()
	wait.Until(t, "the zygote has closed all files", func() bool { return descriptors(t, zygote) <= its })
	if n := networks(t, zygote); n > 3 {
		t.Errorf("the zygote has %d networks: its own and two that are made ahead are enough", n)
	}
	// Users that were had stay this host's: their locks are descriptors.
	wait.Until(t, "we have closed all files", func() bool {
		w.slots.mu.Lock()
		defer w.slots.mu.Unlock()
		return descriptors(t, self) <= ours+len(w.slots.free)
	})
}

func TestStartErrorsAreExplained(t *testing.T) {
	p := &Plan{flags: unix.CLONE_NEWPID, receipt: api.Receipt{Data: "/d"}}
	for _, c := range []struct {
		err   error
		parts []string
	}{
		{&SetupError{wire.StepMap + "/x", unix.EINVAL}, []string{"cannot show /x", "id-mapped", "grant a path on another one, such as ext4"}},
		{&SetupError{wire.StepMap + "/d", unix.EINVAL}, []string{"cannot keep the workspace in /d", "id-mapped", "choose a folder on another one"}},
		{&SetupError{wire.StepStage + "/d", unix.EPERM}, []string{"cannot keep the workspace in /d", "no longer a folder of this user's", "not permitted"}},
		{&SetupError{wire.StepStage + "/x", unix.EPERM}, []string{"cannot show /x to the call", "not permitted"}},
		{&SetupError{wire.StepMap + "/x", unix.EPERM}, []string{"cannot show /x to the call", "not permitted"}},
		{&SetupError{wire.StepStage + "/x", unix.EACCES}, []string{"cannot show /x to the call: permission denied"}},
		{&SetupError{wire.StepProtect + "/x", unix.EACCES}, []string{"cannot protect /x", "let it in"}},
		{&SetupError{wire.StepStage + "/x", unix.ENOENT}, []string{"cannot show /x to the call", "no such file"}},
		{&SetupError{wire.StepClone, unix.ENOSPC}, []string{"cannot clone", "user.max_"}},
		{&SetupError{wire.StepClone, unix.EPERM}, []string{"cannot clone", userNamespaceRemedy()}},
		{&SetupError{"make tea", unix.EIO}, []string{"cannot make tea"}},
	} {
		err := Spec{Plan: p}.explain(c.err)
		wantError(t, err, c.parts...)
		if setup, ok := errors.AsType[*SetupError](c.err); !ok || !errors.Is(err, setup.Err) {
			t.Errorf("%v has lost its cause", err)
		}
	}
	if err := (Spec{Plan: &Plan{}}).explain(&SetupError{wire.StepClone, unix.EPERM}); err.Error() != "cannot clone: operation not permitted" || !OfTheHost(err) {
		t.Errorf("a call without namespaces: %v", err)
	}
	if cause := errors.New("cause"); (Spec{}).explain(cause) != cause {
		t.Error("an error that is not the launcher's was changed")
	}
}

// What is mounted below a grant can be what cannot be shown, and is named.
func TestAMountBelowAGrantIsNamed(t *testing.T) {
	p := &Plan{held: &held{files: map[string]*opened{"/x": {}}, mounts: mountTable{{at: "/x", typ: "ext4"}, {at: "/x/up loads", typ: "nfs4"}, {at: "/xy", typ: "fuse"}}}}
	err := Spec{Plan: p}.explain(&SetupError{wire.StepMap + "/x", unix.EINVAL})
	wantError(t, err, "or one of those mounted in it (/x/up loads: nfs4), cannot map owners", "grant a path beside these, or on another one")
	if setup, ok := errors.AsType[*SetupError](err); !ok || setup.Err != unix.EINVAL || OfTheHost(err) {
		t.Errorf("%v is not told from what the host lacks", err)
	}
	if err := (Spec{Plan: p}).explain(&SetupError{wire.StepMap + "/xy", unix.EINVAL}); strings.Contains(err.Error(), "mounted") {
		t.Error(err)
	}
}

// A grant that cannot be cloned or mapped for what the machine lacks is not to blame.
func TestAGrantThatTheHostCannotShow(t *testing.T) {
	p := &Plan{held: &held{files: map[string]*opened{"/x": {}}}}
	for why, ofTheHost := range map[unix.Errno]bool{
		unix.EPERM: true, unix.ENOSYS: true, unix.ENOMEM: true, unix.ENOSPC: true,
		unix.EINVAL: false, unix.ESTALE: false, unix.ENOENT: false, unix.EACCES: false,
	} {
		for _, step := range []string{wire.StepStage, wire.StepMap} {
			if err := (Spec{Plan: p}).explain(&SetupError{step + "/x", why}); OfTheHost(err) != ofTheHost {
				t.Errorf("%s%v: of the host is %v", step, err, !ofTheHost)
			}
		}
	}
}

func TestTooManyGrants(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	var many []string
	for i := range wire.MaxBirthFiles {
		path := filepath.Join(dir, string(rune('a'+i%26))+string(rune('a'+i/26)))
		mustWrite(t, path, "")
		many = append(many, path)
	}
	c := w.start(w.plan(Policy{Read: many}, Task{}), "sleep", nil, nil)
	wantError(t, c.err, "at most 250", "grant folders instead")
	deep := dir
	for range 3 {
		deep += "/" + string(slices.Repeat([]byte("x"), 250))
	}
	must(t, os.MkdirAll(deep, 0o755))
	many = nil
	for i := range 100 {
		path := deep + "/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		mustWrite(t, path, "")
		many = append(many, path)
	}
	c = w.start(w.plan(Policy{Read: many}, Task{}), "sleep", nil, nil)
	wantError(t, c.err, "at most 65536", "grant folders instead")
	if status := w.run(w.plan(Policy{}, Task{}), "exit7").status(); status.ExitStatus() != 7 {
		t.Errorf("status %#x afterwards", status)
	}
}
