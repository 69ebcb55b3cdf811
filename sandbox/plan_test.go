package sandbox

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// complete is a host that has everything.
func complete(root bool) Features {
	f := Features{
		findings: map[string]Finding{}, landlock: newestLandlock, lifetimes: isolations()[0], ranged: true, root: root, caller: [2]int{7, 8},
		layout: layout{binds: []string{"/usr"}, links: []link{{"usr/bin", "/bin"}}},
	}
	for _, u := range uses {
		f = f.with(Finding{Feature: u.feature, State: Yes})
	}
	return f
}

func plan(t testing.TB, p Policy, f Features, task Task) *Plan {
	t.Helper()
	made, err := resolve(t, p).Plan(f, task)
	must(t, err)
	return made
}

// wantMissing wants an error that names the feature, its reason and a remedy.
func wantMissing(t testing.TB, err error, feature string) {
	t.Helper()
	missing, ok := err.(*MissingError)
	if !ok || missing.Feature != feature || missing.Reason == "" || missing.Remedy == "" || missing.Use == "" {
		t.Errorf("error %v, want one of missing %s", err, feature)
		return
	}
	wantError(t, err, "cannot sandbox the call: "+feature, missing.Use, missing.Reason, missing.Remedy)
}

func degraded(r api.Receipt) (names []string) {
	for _, d := range r.Degraded {
		names = append(names, d.Feature)
	}
	return names
}

func TestEverythingIsEnforced(t *testing.T) {
	r := plan(t, Policy{}, complete(true), Task{}).Receipt()
	want := []string{
		"userns", "mountns", "pidns", "netns", "ipcns", "utsns", "cgroupns", "ownUid", "rootfs", "procfs",
		"capabilities", "seccomp", "landlock", "landlockScope", "rlimits", "lifeline", "timer", "session",
	}
	if !slices.Equal(r.Enforced, want) || len(r.Degraded) != 0 || r.Tier != TierNative || r.Network != NetworkNone || r.LandlockABI != newestLandlock {
		t.Errorf("receipt %+v", r)
	}
}

func TestEachMissingFeature(t *testing.T) {
	for _, u := range uses {
		for _, state := range []State{No, Unknown} {
			t.Run(u.feature+" "+state.String(), func(t *testing.T) {
				f := complete(true).Without(u.feature)
				if state == Unknown {
					f = complete(true).with(Finding{Feature: u.feature, Reason: "a reason", Remedy: "a remedy"})
				}
				testMissing(t, f, u.feature)
			})
		}
	}
}

func testMissing(t *testing.T, f Features, feature string) {
	found := f.find(feature)
	said := map[State]string{No: "is missing", Unknown: "could not be tried"}[found.State]
	made, err := resolve(t, Policy{}).Plan(f, Task{})
	if !found.Optional() {
		wantMissing(t, err, feature)
		wantError(t, err, said)
		if made != nil {
			t.Error("a plan beside the error")
		}
		return
	}
	must(t, err)
	r := made.Receipt()
	if slices.Contains(r.Enforced, feature) || !slices.Contains(degraded(r), feature) {
		t.Errorf("receipt %+v", r)
	}
	for _, d := range r.Degraded {
		if d.Reason == "" || d.Remedy == "" {
			t.Errorf("degradation %+v", d)
		}
	}
	_, err = resolve(t, Policy{Require: []string{feature}}).Plan(f, Task{})
	wantMissing(t, err, feature)
	wantError(t, err, said)
}

// Scopes are Landlock's: a host without it has none, and nobody is told so.
func TestWithoutLandlockThereAreNoScopes(t *testing.T) {
	f := complete(true).Without(FeatureLandlock)
	p := plan(t, Policy{}, f, Task{})
	if want := []string{FeatureLandlock, FeatureLandlockScope}; !slices.Equal(degraded(p.Receipt()), want) || p.receipt.LandlockABI != 0 || p.root.Landlock != 0 {
		t.Errorf("receipt %+v", p.Receipt())
	}
	_, err := resolve(t, Policy{Network: NetworkHost}).Plan(f, Task{})
	wantMissing(t, err, FeatureLandlockScope)
	if p := plan(t, Policy{}, complete(true).Without(FeatureLandlockScope), Task{}); p.root.Landlock != 5 || p.receipt.LandlockABI != 5 {
		t.Errorf("ABI %d without scopes", p.root.Landlock)
	}
}

func TestJudgingLandlock(t *testing.T) {
	for abi, want := range map[int][3]any{
		0: {0, No, No}, 1: {0, No, No}, 2: {2, Yes, No}, 5: {5, Yes, No}, 6: {6, Yes, Yes}, 7: {newestLandlock, Yes, Yes},
	} {
		f := complete(true).withLandlock(abi)
		if got := [3]any{f.landlock, f.find(FeatureLandlock).State, f.find(FeatureLandlockScope).State}; got != want {
			t.Errorf("ABI %d: %v, want %v", abi, got, want)
		}
	}
}

func TestHostNetwork(t *testing.T) {
	p := plan(t, Policy{Network: NetworkHost}, complete(true), Task{})
	r := p.Receipt()
	if slices.Contains(r.Enforced, FeatureNetNS) || len(r.Degraded) != 0 || r.Network != NetworkHost {
		t.Errorf("receipt %+v", r)
	}
	if p.flags&unix.CLONE_NEWNET != 0 || p.root.Loopback || p.flags&unix.CLONE_NEWPID == 0 {
		t.Errorf("flags %#x, loopback %v", p.flags, p.root.Loopback)
	}
	if p := plan(t, Policy{}, complete(true), Task{}); p.flags&unix.CLONE_NEWNET == 0 || !p.root.Loopback {
		t.Errorf("no network: flags %#x, loopback %v", p.flags, p.root.Loopback)
	}
	_, err := resolve(t, Policy{Network: NetworkHost}).Plan(complete(true).Without(FeatureLandlockScope), Task{})
	wantMissing(t, err, FeatureLandlockScope)
	if _, err := resolve(t, Policy{Network: NetworkHost}).Plan(complete(true).Without(FeatureNetNS), Task{}); err != nil {
		t.Errorf("needs a network namespace for the host's network: %v", err)
	}
	files := func(p *Plan) (paths []string) {
		for _, m := range p.root.Mounts {
			if m.Optional && m.Kind == wire.MountBind {
				paths = append(paths, m.Source)
			}
		}
		return paths
	}
	if got := files(p); !slices.Equal(got, networkFiles) {
		t.Errorf("the network's files are %v", got)
	}
}

// Who a call is, in all combinations.
func TestUsersOfCalls(t *testing.T) {
	dir := realTemp(t)
	for _, root := range []bool{true, false} {
		for _, ranged := range []bool{true, false} {
			for _, granted := range []bool{true, false} {
				for _, allowed := range []bool{true, false} {
					f, p := complete(root), Policy{}
					if !ranged {
						f = f.Without(FeatureOwnUID)
					}
					if granted {
						p.Read = []string{dir}
					}
					if allowed {
						p.Allow = []string{SharedUID}
					}
					own := ranged && (root || !granted)
					shared := !own && !root && allowed
					testUser(t, p, f, own, shared)
				}
			}
		}
	}
}

func testUser(t *testing.T, p Policy, f Features, own, shared bool) {
	t.Helper()
	made, err := resolve(t, p).Plan(f, Task{})
	if !own && !shared {
		wantMissing(t, err, FeatureOwnUID)
		return
	}
	must(t, err)
	r := made.Receipt()
	if made.shared != shared || slices.Contains(r.Enforced, FeatureOwnUID) != own || slices.Contains(degraded(r), SharedUID) != shared || slices.Contains(degraded(r), FeatureOwnUID) {
		t.Errorf("%+v: shared %v, receipt %+v", p, made.shared, r)
	}
}

func TestReceiptListsAreNeverNil(t *testing.T) {
	for _, p := range []Policy{{}, {Tier: TierNone}} {
		text, err := json.Marshal(plan(t, p, complete(true), Task{}).Receipt())
		must(t, err)
		if strings.Contains(string(text), "null") || !strings.Contains(string(text), `"degraded":[]`) {
			t.Errorf("receipt %s", text)
		}
	}
	text, _ := json.Marshal(plan(t, Policy{}, complete(true), Task{}).Receipt())
	for _, list := range []string{`"read":[]`, `"write":[]`} {
		if !strings.Contains(string(text), list) {
			t.Errorf("receipt %s has no %s", text, list)
		}
	}
}

func TestGrantsInThePlan(t *testing.T) {
	dir := realTemp(t)
	mustWrite(t, dir+"/file", "")
	for _, root := range []bool{true, false} {
		p := plan(t, Policy{Read: []string{dir}, Write: []string{dir + "/file"}, Allow: []string{SharedUID}}, complete(root), Task{Programs: []Program{{"/bin/sh", "/bin/tool"}}})
		want := []wire.Stage{
			{Source: dir, Map: root, MapUID: 7, MapGID: 8}, {Source: dir + "/file", Write: true, Map: root, MapUID: 7, MapGID: 8}, {Source: "/bin/sh"},
		}
		if !reflect.DeepEqual(p.stage, want) {
			t.Errorf("stages %+v", p.stage)
		}
		var staged []string
		for _, m := range p.root.Mounts {
			if m.Kind == wire.MountStaged {
				staged = append(staged, m.Target)
			}
		}
		if !slices.Equal(staged, []string{dir, dir + "/file", withoutLinks("/bin/tool")}) {
			t.Errorf("staged mounts at %v", staged)
		}
		if slices.Contains(p.root.Writable, dir) || !slices.Contains(p.root.Writable, dir+"/file") {
			t.Errorf("writable %v", p.root.Writable)
		}
		if r := p.Receipt(); !slices.Equal(r.Read, []string{dir}) || !slices.Equal(r.Write, []string{dir + "/file"}) {
			t.Errorf("receipt %+v", r)
		}
	}
}

func TestProfilesAndMasks(t *testing.T) {
	if p := plan(t, Policy{}, complete(true), Task{}); p.root.Seccomp != int64(seccomp.Default) {
		t.Errorf("profile %d", p.root.Seccomp)
	}
	p := plan(t, Policy{Strict: true}, complete(true), Task{OpenFiles: 99})
	if p.root.Seccomp != int64(seccomp.Strict) || seccomp.Strict == seccomp.Default {
		t.Errorf("strict profile %d", p.root.Seccomp)
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/cmdline", "/proc/sysrq-trigger", "/proc/kallsyms"} {
		if !slices.Contains(p.root.Masked, path) {
			t.Errorf("%s is not masked", path)
		}
	}
	if !slices.Equal(p.root.ReadOnly, []string{"/proc/sys"}) || !slices.IsSorted(maskedPaths) {
		t.Errorf("read-only %v", p.root.ReadOnly)
	}
	if p.root.Limits[0] != (wire.Rlimit{Resource: unix.RLIMIT_NOFILE, Value: 99}) {
		t.Errorf("limits %v", p.root.Limits)
	}
	if p.SocketDir() != socketDir || !p.Confined() {
		t.Errorf("socket folder %q, confined %v", p.SocketDir(), p.Confined())
	}
}

func TestTierNone(t *testing.T) {
	for _, feature := range []string{"", FeatureUserNS, FeaturePIDNS, FeatureSeccomp} {
		f := complete(true)
		if feature != "" {
			f = f.Without(feature)
		}
		p := plan(t, Policy{Tier: TierNone}, f, Task{Storage: Storage{WorkspaceBytes: math.MaxInt64}})
		r := p.Receipt()
		withPID := feature != FeaturePIDNS
		if slices.Contains(r.Enforced, FeaturePIDNS) != withPID || slices.Contains(degraded(r), FeaturePIDNS) == withPID || (p.flags != 0) != withPID {
			t.Errorf("without %q: flags %#x, receipt %+v", feature, p.flags, r)
		}
		if p.Confined() || p.SocketDir() != "" || r.Tier != TierNone || r.Network != NetworkHost || !slices.Equal(r.Write, []string{"/"}) {
			t.Errorf("without %q: %+v", feature, r)
		}
	}
	for _, feature := range optionalFeatures { // what is required is never left out in silence
		_, err := resolve(t, Policy{Tier: TierNone, Require: []string{feature}}).Plan(complete(true), Task{})
		wantMissing(t, err, feature)
	}
}

// Callers may do what they like with what they were given.
func TestPlansDoNotChange(t *testing.T) {
	dir := realTemp(t)
	for _, policy := range []Policy{
		{Read: []string{dir}, Write: []string{dir}, Allow: []string{SharedUID}},
		{Tier: TierNone},
	} {
		p := plan(t, policy, complete(false).Without(FeatureLandlock).Without(FeaturePIDNS).with(Finding{Feature: FeaturePIDNS, State: Yes}), Task{})
		wantReceipt, _ := json.Marshal(p.Receipt())
		wantEnv := strings.Join(p.Env(), " ")
		r, env := p.Receipt(), p.Env()
		for _, list := range [][]string{r.Read, r.Write, r.Enforced, env} {
			for i := range list {
				list[i] = "changed"
			}
		}
		for i := range r.Degraded {
			r.Degraded[i] = api.Degradation{}
		}
		if got, _ := json.Marshal(p.Receipt()); string(got) != string(wantReceipt) {
			t.Errorf("receipt became %s", got)
		}
		if got := strings.Join(p.Env(), " "); got != wantEnv {
			t.Errorf("environment became %s", got)
		}
	}
}

func TestResolvedPoliciesDoNotChange(t *testing.T) {
	require, allow := []string{FeatureLandlock}, []string{SharedUID}
	r := resolve(t, Policy{Require: require, Allow: allow})
	require[0], allow[0] = "changed", "changed"
	_, err := r.Plan(complete(false).Without(FeatureLandlock), Task{})
	wantMissing(t, err, FeatureLandlock)
	if _, err := r.Plan(complete(false).Without(FeatureOwnUID), Task{}); err != nil {
		t.Error(err)
	}
}
