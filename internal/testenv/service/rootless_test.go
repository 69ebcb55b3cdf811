package service

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	rootlessUnit   = "toolhost-rootless.service"
	rootlessConfig = "/etc/toolhost/rootless.yaml"
	rootlessSocket = "/run/toolhost-rootless/toolhost.sock"
)

// testRootless is the daemon without root: calls with limits that are killed for certain,
// as the daemon's own user. What its unit lacks fails with it.
func testRootless(t *testing.T) {
	run(t, "useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "toolhost-rootless")
	settings := strings.NewReplacer("{command:", "{allow: [sharedUid], command:", "\n    command:", "\n    allow: [sharedUid]\n    command:").Replace(tools)
	write(t, rootlessConfig, "socket: {path: "+rootlessSocket+", mode: 0660, group: toolhost-rootless}\naccess: {agents: {group: toolhost-rootless, roles: [call]}}\n"+settings)
	run(t, "systemd-analyze", "verify", "--man=no", rootlessUnit)
	run(t, "systemd-analyze", "security", "--no-pager", "--threshold=25", rootlessUnit)
	h := host{name: "rootless", as: []string{"env", "TOOLHOST_SOCKET=" + rootlessSocket}, top: "/sys/fs/cgroup/toolhost.slice/" + rootlessUnit}
	run(t, "systemctl", "start", rootlessUnit)
	r := h.call(t, "hello")
	want(t, r, "ok")
	if degraded := r.degraded(); r.Sandbox.Cgroup != "v2" || !slices.Equal(degraded, []string{"sharedUid"}) {
		t.Errorf("sandbox %+v, want cgroup v2 and nothing missing but sharedUid", r.Sandbox)
	}
	testLimits(t, h)
	testDeadline(t, h)
	outOfMemory(t, h)
	run(t, "usermod", "--append", "--groups", "toolhost-rootless", someone)
	alice := host{name: someone, as: append([]string{"runuser", "-u", someone, "--"}, h.as...)}
	want(t, alice.call(t, "hello"), "ok")
	if out, err := finish(host{as: append([]string{"runuser", "-u", "bob", "--"}, h.as...)}.command(t, "toolhost", "call", "hello")); err == nil {
		t.Errorf("who is in no group has called a tool: %s", out)
	}
	for _, setting := range []string{"RestrictSUIDSGID=yes", "ProtectControlGroups=yes", "SystemCallFilter=~@privileged"} {
		if err := restartWith(t, rootlessUnit, setting); err == nil {
			if r, err := try(t, "toolhost", "call", "--socket", rootlessSocket, "hello"); err == nil {
				t.Errorf("with %q calls work all the same: the unit may have it: %s", setting, r)
			}
		}
		_, _ = try(t, "systemctl", "reset-failed", rootlessUnit)
	}
	run(t, "systemctl", "stop", rootlessUnit)
	noneLeft(t, "1000002")
	if exists(h.top) {
		t.Errorf("the cgroup %s is left", h.top)
	}
	for _, path := range []string{dropInOf(rootlessUnit), rootlessConfig} {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	run(t, "systemctl", "daemon-reload")
}
