package cgroup

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// TestMain lets the test binary play the children: see roles_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		play(role, os.Args[1:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// inVM: there every kernel feature that a test may want must exist.
func inVM() bool { return os.Getenv("TOOLHOST_VM") == "1" }

// need skips the test where the named capability is missing, but not where it
// must be there.
func need(t testing.TB, capability string, have, must bool) {
	t.Helper()
	switch {
	case have:
	case must:
		t.Fatalf("missing, though it must exist here: %s", capability)
	default:
		t.Skipf("missing: %s", capability)
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	need(t, "root rights (to make cgroups)", os.Geteuid() == 0, false)
}

func openRoot(t testing.TB, o Options) *Root {
	t.Helper()
	needRoot(t)
	r, err := Open(wait.Context(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// eachMode runs a test on the host's layout and, where that is hybrid, as if
// the host had no cgroup2 mount.
func eachMode(t *testing.T, test func(t *testing.T, r *Root)) {
	needRoot(t)
	mode := openRoot(t, Options{}).Mode()
	if inVM() && mode != ModeV2 {
		t.Fatalf("mode %v in the VM", mode)
	}
	t.Run(mode.String(), func(t *testing.T) { test(t, openRoot(t, Options{})) })
	if mode == ModeHybrid {
		t.Run(ModeV1.String(), func(t *testing.T) { test(t, openRoot(t, Options{ignoreUnified: true})) })
	}
}

// newGroup makes a group that is killed, emptied and removed after the test.
func newGroup(t testing.TB, r *Root, name string, l Limits) *Group {
	t.Helper()
	g, err := r.NewGroup(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { destroy(t, g) })
	return g
}

// destroy leaves nothing of a group. t.Context is over in a cleanup.
func destroy(t testing.TB, g *Group) {
	t.Helper()
	if err := g.Kill(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	if err := g.WaitEmpty(ctx); err != nil {
		t.Error(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func usage(t testing.TB, g *Group) Usage {
	t.Helper()
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// soon is a moment, for waits that are expected to end in vain.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
