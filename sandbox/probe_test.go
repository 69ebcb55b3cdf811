package sandbox

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Namespaces that are refused are what the host does not offer, and no reason to try again.
func TestProbeWithoutNamespaces(t *testing.T) {
	w := enterAny(t)
	f, _ := w.Probe(wait.Context(t), func(func(*os.File, []*os.File, []*os.File) error) error {
		return &SetupError{wire.StepClone, syscall.EPERM}
	})
	if found := f.find(FeatureUserNS); f.Untried() != nil || found.State != No || found.Remedy != userNamespaceRemedy() {
		t.Errorf("untried %v, finding %+v", f.Untried(), found)
	}
}

// Where Landlock cannot be applied, what went wrong is said of it, and not that there is no
// such kernel.
func TestProbeWithoutLandlock(t *testing.T) {
	w := enterAny(t)
	if w.f.landlock == 0 {
		t.Skip("missing: Landlock")
	}
	failing := true
	f, err := w.Probe(wait.Context(t), func(birth func(*os.File, []*os.File, []*os.File) error) error {
		if failing {
			failing = false
			return &SetupError{wire.StepLandlock, syscall.E2BIG}
		}
		return birth(nil, nil, nil)
	})
	must(t, err)
	for _, feature := range []string{FeatureLandlock, FeatureLandlockScope} {
		if found := f.find(feature); found.State != No || !strings.Contains(found.Reason, syscall.E2BIG.Error()) || f.landlock != 0 {
			t.Errorf("finding %+v, ABI %d", found, f.landlock)
		}
	}
}

func TestRemedyOfANamespaceLimit(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(root+"/proc/sys/user", 0o755))
	mustWrite(t, root+"/proc/sys/user/max_pid_namespaces", "7\n")
	if got := namespaceLimitRemedy(root); got != "" {
		t.Errorf("remedy %q without a limit of 0", got)
	}
	mustWrite(t, root+"/proc/sys/user/max_net_namespaces", "0\n")
	if got := namespaceLimitRemedy(root); got != "type as root: sysctl -w user.max_net_namespaces=15000" {
		t.Errorf("remedy %q", got)
	}
}
