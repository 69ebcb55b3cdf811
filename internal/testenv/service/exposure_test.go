package service

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// exposed are tools that show what each restriction of the unit would take away.
const exposed = "/etc/toolhost/conf.d/exposed.yaml"

func dropInOf(unit string) string { return "/etc/systemd/system/" + unit + ".d/test.conf" }

// restartWith restarts a unit with a setting of its own.
func restartWith(t *testing.T, unit, setting string) error {
	t.Helper()
	write(t, dropInOf(unit), "[Service]\n"+setting+"\n")
	run(t, "systemctl", "daemon-reload")
	_, err := try(t, "systemctl", "restart", unit)
	return err
}

const exposedTools = `tools:
  plain: {command: [echo, hello]}
  home: {command: [cat, /home/public/file], read: [/home/public]}
  jit: {command: [perl, -e, 'exit(syscall(9, 0, 4096, 7, 0x22, -1, 0) == -1)']}
  nice: {command: [perl, -e, 'setpriority(0, 0, 5) or die "setpriority: $$!"']}
  named: {command: [echo, named], network: ["example.com:443"]}
  sends:
    command: [perl, -MSocket, -e, 'socket(my $$s, AF_INET, SOCK_DGRAM, 0) or die "socket: $$!"; send($$s, "x", 0, pack_sockaddr_in(9, inet_aton("127.0.0.1"))) or die "send: $$!"']
    network: host
    allow: [landlockScope]
  shares: {command: [readlink, /proc/self/ns/net], network: host, allow: [landlockScope]}
`

// capabilities are the unit's, but for one.
func capabilitiesWithout(name string) string {
	all := "CAP_SYS_ADMIN CAP_SETUID CAP_SETGID CAP_DAC_OVERRIDE"
	return "CapabilityBoundingSet=\nCapabilityBoundingSet=" + strings.Replace(all, name, "", 1)
}

// testExposure: what docs/decisions/0012-exposure-of-the-unit.md says that calls need
// fails where the unit may not do it; of CAP_SYS_ADMIN, service_rights.txtar of
// cmd/toolhost shows it. A line that does not fail any more is one by which
// the unit could be restricted further.
func testExposure(t *testing.T) {
	write(t, "/home/public/file", "granted\n") // that can be shown only by file systems that map owners, which the guest has not
	write(t, exposed, exposedTools)
	restart := func(setting string) error { return restartWith(t, "toolhost.service", setting) }
	fails := func(tool string) error {
		out, err := try(t, "toolhost", "call", tool)
		if host := run(t, "readlink", "/proc/1/ns/net"); err == nil && tool == "shares" && strings.TrimSpace(out) != strings.TrimSpace(host) {
			err = fmt.Errorf("its network is %s, the host's is %s", out, host)
		}
		return err
	}
	if err := restart(""); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"plain", "jit", "nice", "named", "sends", "shares"} {
		if err := fails(tool); err != nil {
			t.Errorf("%s does not work with the unit as it is: %v", tool, err)
		}
	}
	for _, line := range []struct{ setting, tool string }{
		{"RestrictNamespaces=~user", "plain"},
		{"RestrictNamespaces=~pid", "plain"},
		{"RestrictNamespaces=~net", "plain"},
		{"RestrictNamespaces=~uts", "plain"},
		{"RestrictNamespaces=~mnt", "plain"},
		{"RestrictNamespaces=~cgroup", "plain"},
		{"RestrictNamespaces=~ipc", "plain"},
		{"SystemCallFilter=~@mount", "plain"},
		{"SystemCallFilter=~@privileged", "plain"},
		{"SystemCallFilter=~@resources", "nice"},
		{"ProtectControlGroups=yes", "plain"},
		{"ProtectHostname=yes", "plain"},
		{"RestrictSUIDSGID=yes", "plain"},
		{"MemoryDenyWriteExecute=yes", "jit"},
		{"PrivateUsers=yes", "plain"},
		{capabilitiesWithout("CAP_SETUID"), "plain"},
		{capabilitiesWithout("CAP_SETGID"), "plain"},
		{capabilitiesWithout("CAP_DAC_OVERRIDE"), "plain"},
		{"PrivateNetwork=yes", "shares"},
		{"IPAddressDeny=any", "sends"},
		{"RestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX AF_NETLINK", "plain"},
		{"RestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "named"},
		{"RestrictAddressFamilies=~AF_UNIX", "plain"},
		{"ProtectHome=yes", "home"},
	} {
		if err := restart(line.setting); err == nil && fails(line.tool) == nil {
			t.Errorf("with %q the tool %s works all the same: the unit may have it", line.setting, line.tool)
		}
		_, _ = try(t, "systemctl", "reset-failed", "toolhost.service", "toolhost.socket")
	}
	for _, path := range []string{dropInOf("toolhost.service"), exposed} {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	run(t, "systemctl", "daemon-reload")
	run(t, "systemctl", "restart", "toolhost.service")
	want(t, root.call(t, "hello"), "ok")
}
