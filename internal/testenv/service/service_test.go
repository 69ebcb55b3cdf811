package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// tools are the same for all hosts. Each has a word of its own in its command
// line, by which leftovers are found.
const tools = `stop: {wait: 1s}
tools:
  hello: {command: [echo, hello]}
  bounded: {command: [sleep, "1000001"], memory: 64MiB, pids: 10, cpu: 50%}
  greedy: {command: [tail, /dev/zero], memory: 32MiB, timeout: 1m}
  stubborn:
    command: [sh, -c, "trap '' TERM; echo begun; for i in 1 2 3 4 5; do setsid sleep 1000002 & done; while :; do sleep 1000002; done"]
    timeout: 5s
    grace: 500ms
  brief: {command: [sh, -c, "sleep 12; echo finished"], timeout: 1m}
  slow: {command: [sh, -c, "echo begun; sleep 1000003; echo done"], timeout: 10m}
`

// TestLife is the life of the deb on one machine, and then that of the rpm; each
// step needs those before.
func TestLife(t *testing.T) {
	needSystem(t)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Install", testInstall},
		{"Socket", testSocket},
		{"Limits", func(t *testing.T) { testLimits(t, root) }},
		{"Deadline", func(t *testing.T) { testDeadline(t, root) }},
		{"OOM", testOOM},
		{"Users", testUsers},
		{"Team", testTeam},
		{"Reload", testReload},
		{"Stop", testStop},
		{"Crash", testCrash},
		{"UserService", testUserService},
		{"WithoutSystemd", testWithoutSystemd},
		{"Upgrade", testUpgrade},
		{"Exposure", testExposure},
		{"Rootless", testRootless},
		{"Remove", testRemove},
		{"Purge", testPurge},
		{"RPMInstall", testRPMInstall},
		{"RPMService", testRPMService},
		{"RPMUpgrade", testRPMUpgrade},
		{"RPMErase", testRPMErase},
	} {
		if !t.Run(step.name, step.test) {
			t.Fatal("the steps after this one need it")
		}
	}
}

func testInstall(t *testing.T) {
	run(t, "dpkg", "--install", oldDeb)
	if enabled := property(t, "toolhost.socket", "UnitFileState"); enabled != "enabled" {
		t.Errorf("the socket is %s after the installation, want enabled", enabled)
	}
	isState(t, "toolhost.socket", "active")
	isState(t, "toolhost.service", "inactive")
	run(t, "getent", "group", "toolhost")
	run(t, "toolhost", "config", "validate", "--config", "/etc/toolhost/toolhost.yaml")
	run(t, "systemd-analyze", "verify", "--man=no", "toolhost.service", "toolhost.socket", "toolhost-worker.service")
	// What keeps it from less is in exposure_test.go.
	run(t, "systemd-analyze", "security", "--no-pager", "--threshold=40", "toolhost.service")
	run(t, "systemd-analyze", "security", "--no-pager", "--threshold=40", "toolhost-worker.service")
}

// testSocket has a client start the daemon.
func testSocket(t *testing.T) {
	write(t, "/etc/toolhost/conf.d/test.yaml", tools)
	r := root.call(t, "hello")
	want(t, r, "ok")
	if r.Sandbox.Cgroup != "v2" || len(r.degraded()) > 0 || r.Sandbox.UID < 1000 {
		t.Errorf("sandbox %+v, want cgroup v2, a user of its own and nothing missing", r.Sandbox)
	}
	isState(t, "toolhost.service", "active")
	for _, controller := range []string{"cpu", "io", "memory", "pids"} {
		if file := root.top + "/cgroup.subtree_control"; !slices.Contains(strings.Fields(read(t, file)), controller) {
			t.Errorf("%s is not delegated: %s has %q", controller, file, read(t, file))
		}
	}
	green(t, root)
}

// green has doctor find nothing that keeps calls from running.
func green(t *testing.T, h host) (levels []string) {
	t.Helper()
	report := h.toolhost(t, "doctor")
	for line := range strings.Lines(report) {
		level, rest, _ := strings.Cut(line, " ")
		// The kernel is older than Landlock's scopes.
		if level == "fail" || level == "warn" && !strings.Contains(rest, "landlockScope") && !strings.Contains(rest, "cgroup io") {
			t.Errorf("doctor: %s", line)
		}
		levels = append(levels, level)
	}
	return levels
}

// testLimits looks at what the kernel was told, and that it goes with the call.
func testLimits(t *testing.T, h host) {
	ended := h.begin(t, "bounded")
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "1000001")) > 0 })
	leaf := cgroupOf(t, processes.Of("sleep", "1000001")[0])
	if !strings.HasPrefix(leaf, h.top+"/") {
		t.Errorf("the call is in %s, want it below %s", leaf, h.top)
	}
	for file, value := range map[string]string{"memory.max": "67108864", "cpu.max": "50000 100000"} {
		if got := read(t, filepath.Join(leaf, file)); got != value {
			t.Errorf("%s is %s, want %s", file, got, value)
		}
	}
	if got := read(t, filepath.Join(leaf, "pids.max")); len(got) != 2 { // 10, and what is toolhost's own
		t.Errorf("pids.max is %s, want a little more than 10", got)
	}
	h.abortAll(t)
	r := ended()
	want(t, r, "cancelled")
	if r.Kill.Stage != "term" {
		t.Errorf("it was ended by the stage %s, want term: SIGTERM does not reach it", r.Kill.Stage)
	}
	noneLeft(t, "1000001")
	if _, err := os.Stat(leaf); err == nil {
		t.Errorf("the cgroup of an ended call is left: %s", leaf)
	}
}

func testDeadline(t *testing.T, h host) {
	r := h.call(t, "stubborn")
	want(t, r, "timeout")
	if !r.Partial || !strings.Contains(r.Output.Stdout.Head, "begun") && (len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, "begun")) {
		t.Errorf("what it had written is lost: %+v", r)
	}
	if r.Kill.Reaped < 6 {
		t.Errorf("%d processes were killed, want at least 6", r.Kill.Reaped)
	}
	noneLeft(t, "1000002")
}

// testOOM: the limit is the call's alone, and the daemon lives on.
func testOOM(t *testing.T) {
	before := property(t, "toolhost.service", "MainPID")
	outOfMemory(t, root)
	if now := property(t, "toolhost.service", "MainPID"); now != before {
		t.Errorf("the daemon had pid %s and has %s", before, now)
	}
}

func outOfMemory(t *testing.T, h host) {
	t.Helper()
	r := h.call(t, "greedy")
	want(t, r, "oom")
	// toolhost may be faster than the kernel's kill, which is then not counted.
	if r.Usage.OOMEvents+r.Usage.OOMKills == 0 {
		t.Errorf("no OOM was counted: %+v", r.Usage)
	}
}

// testUsers: who may connect.
func testUsers(t *testing.T) {
	as := host{name: someone, as: []string{"runuser", "-u", someone, "--"}}
	if out, err := finish(as.command(t, "toolhost", "call", "--socket", "/run/toolhost/toolhost.sock", "hello")); err == nil {
		t.Errorf("a user who is not in the group toolhost called a tool: %s", out)
	}
	run(t, "usermod", "--append", "--groups", "toolhost", someone)
	want(t, as.call(t, "--socket", "/run/toolhost/toolhost.sock", "hello"), "ok")
	run(t, "gpasswd", "--delete", someone, "toolhost")
}

// testReload: a call that runs is not touched, and new tools are there.
func testReload(t *testing.T) {
	before := property(t, "toolhost.service", "MainPID")
	ended := root.begin(t, "slow")
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "1000003")) > 0 })
	write(t, "/etc/toolhost/conf.d/more.yaml", "tools:\n  added: {command: [echo, added]}\n")
	run(t, "systemctl", "reload", "toolhost.service")
	wait.Until(t, "the new tool is there", func() bool {
		_, err := try(t, "toolhost", "call", "added")
		return err == nil
	})
	if now := property(t, "toolhost.service", "MainPID"); now != before || len(processes.WithArguments("1000003")) == 0 {
		t.Errorf("after a reload the daemon is %s (was %s), and %d processes of the call run", now, before, len(processes.WithArguments("1000003")))
	}
	root.abortAll(t)
	want(t, ended(), "cancelled")
}

// testStop: calls get their results, and nothing is left.
func testStop(t *testing.T) {
	ended := root.begin(t, "slow")
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "1000003")) > 0 })
	run(t, "systemctl", "stop", "toolhost.service")
	want(t, ended(), "cancelled")
	stopped(t)
	if result := property(t, "toolhost.service", "Result"); result != "success" {
		t.Errorf("the service ended with %s", result)
	}
	isState(t, "toolhost.socket", "active")
	want(t, root.call(t, "hello"), "ok") // the next client starts it again
}

// stopped is when nothing of root's daemon is left.
func stopped(t *testing.T) {
	t.Helper()
	isState(t, "toolhost.service", "inactive")
	noneLeft(t, "1000003")
	noneLeft(t, "toolhost-zygote")
	if _, err := os.Stat(root.top); err == nil {
		t.Errorf("the cgroup %s is left", root.top)
	}
}

// gone is when a package has been removed: no unit, process or cgroup is left.
func gone(t *testing.T) {
	t.Helper()
	stopped(t)
	noneLeft(t, "/usr/bin/toolhost")
	for _, unit := range []string{"toolhost.socket", "toolhost.service", "toolhost.slice"} {
		wait.Until(t, unit+" is gone", func() bool {
			return property(t, unit, "FragmentPath") == "" && property(t, unit, "ActiveState") == "inactive"
		})
	}
	if slice := filepath.Dir(root.top); exists(slice) {
		t.Errorf("the cgroup %s is left", slice)
	}
}

// testCrash: a daemon that dies takes its calls along, and comes back.
func testCrash(t *testing.T) {
	before := property(t, "toolhost.service", "MainPID")
	ended := root.command(t, "toolhost", "call", "slow")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "1000003")) > 0 })
	run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", "toolhost.service")
	if err := ended.Wait(); err == nil {
		t.Error("the call's client succeeded, though the daemon was killed")
	}
	wait.Until(t, "the tool is gone", func() bool { return len(processes.WithArguments("1000003")) == 0 })
	wait.Until(t, "the service is back", func() bool {
		now := property(t, "toolhost.service", "MainPID")
		return now != before && now != "0" && property(t, "toolhost.service", "ActiveState") == "active"
	})
	want(t, root.call(t, "hello"), "ok")
}

func testUpgrade(t *testing.T) {
	upgrade(t, func() { run(t, "dpkg", "--install", newDeb) })
}

// upgrade: the call that runs may finish, the daemon is the new one, and it has
// the old one's journal.
func upgrade(t *testing.T, install func()) {
	t.Helper()
	write(t, "/etc/toolhost/conf.d/test.yaml", strings.Replace(tools, "wait: 1s", "wait: 1m", 1))
	run(t, "systemctl", "reload", "toolhost.service")
	before := property(t, "toolhost.service", "MainPID")
	ended := root.begin(t, "brief")
	wait.Until(t, "the call runs", func() bool { return len(processes.Of("sleep", "12")) > 0 })
	install()
	r := ended()
	want(t, r, "ok")
	if now := property(t, "toolhost.service", "MainPID"); now == before || now == "0" {
		t.Errorf("the daemon had pid %s and has %s after the upgrade", before, now)
	}
	if version := run(t, "toolhost", "version"); !strings.Contains(version, "toolhost 2.0.0 ") {
		t.Errorf("after the upgrade the version is %s", version)
	}
	want(t, root.call(t, "hello"), "ok")
	root.toolhost(t, "log", "--socket", "/run/toolhost/toolhost.sock", r.TurnID)
}

// testRemove: the slice goes whether systemd has seen in time that nobody needs it or not.
func testRemove(t *testing.T) {
	const dropIn = "/run/systemd/system/toolhost.slice.d/test.conf"
	write(t, dropIn, "[Unit]\nStopWhenUnneeded=no\n")
	run(t, "systemctl", "daemon-reload")
	run(t, "dpkg", "--remove", "toolhost")
	gone(t)
	if err := os.Remove(dropIn); err != nil {
		t.Error(err)
	}
	for _, kept := range []string{"/etc/toolhost/toolhost.yaml", "/var/lib/toolhost"} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("removed with the package: %v", err)
		}
	}
}

func testPurge(t *testing.T) {
	_ = os.RemoveAll("/etc/toolhost/conf.d")
	run(t, "dpkg", "--purge", "toolhost")
	for _, gone := range []string{"/etc/toolhost", "/var/lib/toolhost", "/var/cache/toolhost", "/run/toolhost", "/etc/systemd/system/sockets.target.wants/toolhost.socket"} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is left after the purge", gone)
		}
	}
}
