package service

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// oldRPM and newRPM are the same two versions as the debs, in the same place.
const (
	oldRPM = "/packages/old.rpm"
	newRPM = "/packages/new.rpm"
)

const (
	configFile = "/etc/toolhost/toolhost.yaml"
	// presets are a distribution's word on which units are enabled. Debian's enable all, those of rpm mostly none.
	presets = "/etc/systemd/system-preset/00-test.preset"
	edited  = "\n# edited by an admin\n"
)

// rpm is the package manager's command. Debian's own packages are not in its
// database, so that no dependency can be met.
func rpm(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "rpm", append([]string{"--nodeps"}, args...)...)
}

// testRPMInstall: a distribution decides whether the socket is enabled, and an
// admin may decide otherwise.
func testRPMInstall(t *testing.T) {
	run(t, "groupdel", "toolhost") // the deb left it
	write(t, presets, "disable toolhost.*\n")
	rpm(t, "--install", oldRPM)
	run(t, "rpm", "--verify", "--nodeps", "toolhost")
	run(t, "getent", "group", "toolhost")
	if enabled := property(t, "toolhost.socket", "UnitFileState"); enabled != "disabled" {
		t.Errorf("the socket is %s after the installation, want disabled as the presets say", enabled)
	}
	isState(t, "toolhost.socket", "inactive")
	if flags := run(t, "rpm", "--query", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", "toolhost"); !strings.Contains(flags, configFile+" cn\n") {
		t.Errorf("%s is not config(noreplace):\n%s", configFile, flags)
	}
	run(t, "systemctl", "enable", "--now", "toolhost.socket")
}

// testRPMService is the daemon, started by hand, with limits as from the deb.
func testRPMService(t *testing.T) {
	write(t, "/etc/toolhost/conf.d/test.yaml", tools)
	run(t, "systemctl", "start", "toolhost.service")
	isState(t, "toolhost.service", "active")
	r := root.call(t, "hello")
	want(t, r, "ok")
	if len(r.Content) != 1 || strings.TrimSpace(r.Content[0].Text) != "hello" || r.Sandbox.Cgroup != "v2" || len(r.degraded()) > 0 {
		t.Errorf("%+v, want hello, from a sandbox with nothing missing", r)
	}
	testLimits(t, root)
	testDeadline(t, root)
	testOOM(t)
	green(t, root)
}

// testRPMUpgrade: what an admin has changed stays.
func testRPMUpgrade(t *testing.T) {
	write(t, configFile, read(t, configFile)+edited)
	upgrade(t, func() { rpm(t, "--upgrade", newRPM) })
	if enabled := property(t, "toolhost.socket", "UnitFileState"); enabled != "enabled" {
		t.Errorf("the socket is %s after the upgrade, want enabled as before", enabled)
	}
	isState(t, "toolhost.socket", "active")
	if text, err := os.ReadFile(configFile); err != nil || !strings.HasSuffix(string(text), edited) {
		t.Errorf("after the upgrade the edited configuration is %q, %v", text, err)
	}
	if installed := run(t, "rpm", "--query", "toolhost"); installed != "toolhost-2.0.0-1.x86_64\n" {
		t.Errorf("installed are %q", installed)
	}
}

// testRPMErase: calls get their results, what is edited stays under rpm's name
// for it, and data stay.
func testRPMErase(t *testing.T) {
	write(t, "/etc/toolhost/conf.d/test.yaml", tools)
	run(t, "systemctl", "reload", "toolhost.service")
	ended := root.begin(t, "slow")
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "1000003")) > 0 })
	files := strings.Fields(run(t, "rpm", "--query", "--list", "toolhost"))
	rpm(t, "--erase", "toolhost")
	want(t, ended(), "cancelled")
	gone(t)
	for _, file := range files {
		if file != "/etc/toolhost" && file != "/etc/toolhost/conf.d" && exists(file) {
			t.Errorf("left by the package: %s", file)
		}
	}
	for _, kept := range []string{configFile + ".rpmsave", "/etc/toolhost/conf.d/test.yaml", "/var/lib/toolhost/journal.db"} {
		if !exists(kept) {
			t.Errorf("removed with the package: %s", kept)
		}
	}
	if text := read(t, configFile+".rpmsave"); !strings.HasSuffix(text, strings.TrimSpace(edited)) {
		t.Errorf("the configuration was kept without what was edited: %q", text)
	}
	if err := os.Remove(presets); err != nil {
		t.Error(err)
	}
}
