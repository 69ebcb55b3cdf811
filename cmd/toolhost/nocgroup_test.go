package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/exit"
)

// asOutsider runs a toolhost command line as a user to whom nothing was delegated.
func asOutsider(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	out, errs, code := asUserWith(t, func(*testing.T, int) {}, dir, subordinate, args...)
	return string(out), string(errs), code
}

// A user without a delegated cgroup is told what to type, and what runs a call all
// the same; that says what is lost, and ends the call for certain.
func TestWithoutADelegatedCgroup(t *testing.T) {
	t.Parallel()
	needRange(t)
	dir := userDir(t)
	_, stderr, code := asOutsider(t, dir, "exec", "--", "true")
	if code != exit.Host || !strings.Contains(stderr, "--unsafe-no-cgroup") || !strings.Contains(stderr, "toolhost ...") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	stdout, stderr, code := asOutsider(t, dir, "doctor")
	if code != exit.Failed || !strings.Contains(stdout, "--unsafe-no-cgroup") || !strings.Contains(stdout, "ok    trial call") {
		t.Errorf("doctor: exit status %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = asOutsider(t, dir, "exec", "--unsafe-no-cgroup", "--json", "--timeout", "500ms", "--grace", "100ms", "--", "sh", "-c", "trap '' TERM; setsid sleep 1000 & setsid sleep 1000 & wait; sleep 1000")
	var r api.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: exit status %d: %s%s", err, code, stdout, stderr)
	}
	if code != exit.Timeout || r.Status != api.StatusTimeout || r.Kill.Survivors != 0 || r.Sandbox.Cgroup != "none" {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	if !slices.ContainsFunc(r.Sandbox.Degraded, func(d api.Degradation) bool { return d.Feature == "cgroup" }) || !strings.Contains(stderr, "WARNING: no cgroup") {
		t.Errorf("what is lost is not told: %s%s", stdout, stderr)
	}
}

func TestNoCgroupContradicts(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"unsafe-no-sandbox", "cgroup-parent", "cpu", "cpu-time"} {
		given := pflag.NewFlagSet("", pflag.ContinueOnError)
		given.String(other, "", "")
		_ = given.Set(other, "1")
		f := callFlags{noCgroup: true, given: given}
		if err := f.check(); err == nil || !strings.Contains(err.Error(), "--"+other+" and --unsafe-no-cgroup contradict") {
			t.Errorf("--%s: %v", other, err)
		}
	}
}
