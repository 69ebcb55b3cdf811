package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// probeTimeout bounds one trial; it is generous, for a starved machine.
const probeTimeout = 30 * time.Second

// trialProgram is the launcher as a tool: in a confined world there is no
// other that is known to work.
const trialProgram = ownImage

// forbidden are folders that a confined tool must not be able to write to.
var forbidden = []string{"/", "/usr", "/usr/bin", "/etc", "/dev", "/proc/sys", "/run"}

// Probe finds the host's features by a trial: it starts a sandboxed program that
// tries what it must not be able to do. The error is ErrDiedAtBirth if no process
// survives its birth in those cgroups. Any other error means that not even a
// launcher without a sandbox can be started.
func (h *Host) Probe(ctx context.Context, into Into) (Features, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	f := h.assume()
	err := h.tryNative(ctx, &f, into)
	if err == nil {
		h.remember(f)
	}
	if err != nil && f.landlock > 0 && f.find(FeatureLandlock).State == No { // it can be done without
		f = h.assume().withoutLandlock(f.find(FeatureLandlock))
		err = h.tryNative(ctx, &f, into)
	}
	if errors.Is(err, ErrDiedAtBirth) {
		return f, err
	}
	if err == nil {
		f.lifetimes = isolations()[0] // a part of what has just worked
		return f, nil
	}
	return f, h.tryLifetimes(ctx, &f, into)
}

func (h *Host) assume() Features {
	h.mu.Lock()
	defer h.mu.Unlock()
	return assumed(h.users)
}

// assumed is what is known without a trial: what a trial then confirms, or
// takes back.
func assumed(u users) Features {
	f := Features{
		findings: map[string]Finding{}, layout: findLayout(""), root: os.Geteuid() == 0,
		ranged: u.ranged, caller: [2]int{os.Geteuid(), os.Getegid()}, processors: int64(runtime.NumCPU()), hard: findHardLimits(),
	}
	for _, use := range uses {
		f = f.with(Finding{Feature: use.feature, State: Yes})
	}
	if u.noRange != nil {
		remedy := "allow " + SharedUID + " to run calls as the caller"
		if f.root { // which no call is ever run as
			remedy = "map more ids into the user namespace that toolhost runs in"
		}
		f = f.with(Finding{Feature: FeatureOwnUID, State: No, Reason: u.noRange.Error(), Remedy: remedy})
		if none, ok := errors.AsType[*errNoRange](u.noRange); ok {
			f = f.with(Finding{Feature: FeatureOwnUID, State: No, Reason: none.reason, Remedy: none.remedy + "; or allow " + SharedUID + " to run calls as the caller"})
		}
	}
	if u.noNamespace != nil {
		f = f.with(Finding{Feature: FeatureUserNS, State: No, Reason: u.noNamespace.Error(), Remedy: userNamespaceRemedy()})
	}
	return f.withLandlock(landlockABI())
}

// withoutLandlock has none, and says of it what was found. Scopes are a part of it.
func (f Features) withoutLandlock(found Finding) Features {
	scope := found
	scope.Feature = FeatureLandlockScope
	f.landlock = 0
	return f.with(found).with(scope)
}

// withLandlock judges an ABI. The first one cannot rename between folders,
// which breaks git and others, so it counts as none.
func (f Features) withLandlock(abi int) Features {
	f.landlock = min(abi, newestLandlock)
	switch {
	case abi <= 1:
		f.landlock = 0
		reason := "this kernel has no Landlock"
		if abi == 1 {
			reason = "this kernel's Landlock (ABI 1) cannot rename between folders"
		}
		f = f.with(Finding{Feature: FeatureLandlock, State: No, Reason: reason, Remedy: "run Linux 5.19 or newer with landlock among the LSMs (lsm= of the kernel command line)"})
		fallthrough
	case abi < 6:
		f = f.with(Finding{Feature: FeatureLandlockScope, State: No, Reason: fmt.Sprintf("this kernel's Landlock has ABI %d, scopes came with 6", abi), Remedy: "run Linux 6.12 or newer"})
	}
	return f
}

// newestLandlock is the newest ABI whose rights this package knows.
const newestLandlock = 6

func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// tryNative runs the trial. What it contradicts is no longer a feature.
func (h *Host) tryNative(ctx context.Context, f *Features, into Into) error {
	if f.find(FeatureUserNS).State != Yes {
		return errors.New(f.find(FeatureUserNS).Reason)
	}
	plan, err := Resolved{policy: Policy{Allow: []string{SharedUID}}}.Plan(*f, Task{})
	if err != nil {
		return err
	}
	plan.root.Files = append(slices.Clone(plan.root.Files), wire.Text{Path: wire.TrialMark})
	status, err := h.trial(ctx, plan, into)
	switch {
	case errors.Is(err, ErrDiedAtBirth):
		return err
	case err != nil:
		h.blame(ctx, f, err, into)
		return err
	case status.ExitStatus() != 0:
		return f.contradict(status)
	}
	return nil
}

// trial starts the trial program and waits for what it says.
func (h *Host) trial(ctx context.Context, plan *Plan, into Into) (syscall.WaitStatus, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	args := []string{"toolhost-trial", wire.ModeTrial}
	if plan.confine { // only there is it harmless to try what is forbidden
		args = append(args, forbidden...)
	}
	p, err := h.Start(ctx, Spec{
		Plan: plan, Path: trialProgram, Args: args, Dir: "/", Stdio: [3]*os.File{null, null, null}, Timer: probeTimeout, Into: into,
	})
	if err != nil {
		return 0, err
	}
	defer p.Release()
	defer p.Kill()
	if err := p.Started(ctx); err != nil {
		return 0, err
	}
	select {
	case status, ok := <-p.Exited():
		if !ok {
			return 0, ErrDiedAtBirth
		}
		return status, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// contradictions are the features that the bits of a trial's exit status deny
// (sandbox/launcher).
var contradictions = []string{FeatureRoot, FeatureSeccomp, FeatureSeccomp, FeatureCapabilities, FeatureOwnUID, FeatureNetNS}

func (f *Features) contradict(status syscall.WaitStatus) error {
	reason := fmt.Sprintf("a trial call could do what it must not (status %#x)", uint32(status))
	for bit, feature := range contradictions {
		if status.Exited() && status.ExitStatus()&(1<<bit) == 0 {
			continue
		}
		*f = f.with(Finding{Feature: feature, State: No, Reason: reason, Remedy: "report this: it is a bug, or a kernel that is not what it says"})
	}
	return errors.New(reason)
}

// blame finds the feature whose trial failed. All that could not be tried for
// that reason stays unknown.
func (h *Host) blame(ctx context.Context, f *Features, err error, into Into) {
	setup, ok := errors.AsType[*SetupError](err)
	for _, use := range uses {
		if f.find(use.feature).State == Yes {
			*f = f.with(Finding{Feature: use.feature, State: Unknown, Reason: "the trial call failed before it: " + err.Error(), Remedy: "see to that first"})
		}
	}
	if ok && setup.Step == wire.StepClone && !passing(err) {
		h.tryNamespaces(ctx, f, into)
		return
	}
	if !ok || setup.remedy() != "" { // not one of the features is to blame
		f.untried = err
		return
	}
	for _, s := range stepFeatures {
		if strings.HasPrefix(setup.Step, s.prefix) {
			*f = f.with(Finding{Feature: s.feature, State: No, Reason: setup.Error(), Remedy: s.remedy})
			return
		}
	}
}

// stepFeatures say which feature a launcher's step (sandbox/launcher) is part
// of; the first prefix counts.
var stepFeatures = []struct{ prefix, feature, remedy string }{
	{"bring lo up", FeatureNetNS, "allow CAP_NET_ADMIN in user namespaces"},
	{"unshare the cgroup", FeatureCgroupNS, "run a kernel with CONFIG_CGROUPS"},
	{"set the host name", FeatureUTSNS, "allow CAP_SYS_ADMIN in user namespaces"},
	{"mount proc", FeatureProc, "do not mask /proc of the container that toolhost runs in (docker: --security-opt systempaths=unconfined; podman: --security-opt unmask=ALL)"},
	{"mask", FeatureProc, "do not mask /proc of the container that toolhost runs in"},
	{"drop", FeatureCapabilities, "run Linux 5.14 or newer"},
	{"set secure bits", FeatureCapabilities, "run Linux 5.14 or newer"},
	{"renounce", FeatureCapabilities, "run Linux 5.14 or newer"},
	{wire.StepLandlock, FeatureLandlock, "add landlock to the LSMs (lsm= of the kernel command line)"},
	{"install the system call filter", FeatureSeccomp, "run a kernel with CONFIG_SECCOMP_FILTER"},
	{"", FeatureRoot, userNamespaceHint},
}

// passing says whether namespaces were refused for something else that the host lacks, or
// because there are as many as there may be.
func passing(err error) bool {
	return Remedy(err) != "" || errors.Is(err, unix.ENOSPC) && namespaceLimitRemedy("") == ""
}

// tryNamespaces tries each kind by itself, to name the one that is refused.
func (h *Host) tryNamespaces(ctx context.Context, f *Features, into Into) {
	for _, n := range []struct {
		feature string
		flag    int64
	}{
		{FeatureUserNS, 0},
		{FeatureMountNS, unix.CLONE_NEWNS},
		{FeaturePIDNS, unix.CLONE_NEWPID},
		{FeatureNetNS, unix.CLONE_NEWNET},
		{FeatureIPCNS, unix.CLONE_NEWIPC},
		{FeatureUTSNS, unix.CLONE_NEWUTS},
	} {
		_, err := h.trial(ctx, &Plan{flags: n.flag, user: true, shared: !f.ranged}, into)
		if err == nil {
			*f = f.with(Finding{Feature: n.feature, State: Yes})
			continue
		}
		*f = f.with(Finding{Feature: n.feature, State: No, Reason: err.Error(), Remedy: userNamespaceRemedy()})
		if n.flag == 0 {
			return // without it the others cannot be tried
		}
	}
}

// tryLifetimes finds the strongest isolation without a sandbox.
func (h *Host) tryLifetimes(ctx context.Context, f *Features, into Into) error {
	var tried []error
	for _, candidate := range isolations() {
		f.lifetimes = candidate
		plan, _ := Resolved{}.planNone(*f, Task{})
		_, err := h.trial(ctx, plan, into)
		if err == nil || errors.Is(err, ErrDiedAtBirth) {
			return err
		}
		tried = append(tried, err)
	}
	return fmt.Errorf("cannot start the launcher: %w", together(tried))
}

// together is one error of several, on one line, which says each thing once.
func together(list []error) (all error) {
	seen := map[string]bool{}
	for _, err := range list {
		switch {
		case seen[err.Error()]:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
		seen[err.Error()] = true
	}
	return all
}
