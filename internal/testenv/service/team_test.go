package service

import (
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// testTeam: two users who share the system's daemon, one by the socket and by a token
// for calls, one by a token that watches and approves.
func testTeam(t *testing.T) {
	const second, url = "carol", "http://127.0.0.1:7070"
	run(t, "useradd", "--create-home", second)
	run(t, "usermod", "--append", "--groups", "toolhost", someone)
	write(t, "/etc/toolhost/conf.d/team.yaml", `listen: 127.0.0.1:7070
access: {agents: {group: toolhost, roles: [call]}}
tools:
  careful: {command: [echo, careful], mode: ask}
`)
	run(t, "systemctl", "restart", "toolhost.service")
	for user, roles := range map[string]string{someone: "call", second: "watch,approve"} {
		file := "/home/" + user + "/token"
		write(t, file, run(t, "toolhost", "token", "create", user, "--role", roles))
		run(t, "chown", user+":", file)
		run(t, "chmod", "0600", file)
	}
	as := func(user string, args ...string) (string, error) {
		t.Helper()
		return finish(host{as: []string{"runuser", "-u", user, "--"}}.command(t, args...))
	}
	byToken := func(user string, args ...string) (string, error) {
		t.Helper()
		return as(user, append(append([]string{"toolhost"}, args...), "--url", url, "--token-file", "/home/"+user+"/token")...)
	}
	wait.Until(t, "the daemon answers on TCP", func() bool {
		_, err := byToken(second, "ps")
		return err == nil
	})

	alice := host{name: someone, as: []string{"runuser", "-u", someone, "--"}}
	want(t, alice.call(t, "--socket", "/run/toolhost/toolhost.sock", "hello"), "ok")
	want(t, alice.call(t, "--url", url, "--token-file", "/home/"+someone+"/token", "hello"), "ok")
	if out, err := byToken(second, "call", "hello"); err == nil || !strings.Contains(err.Error(), "this needs the role call") {
		t.Errorf("who may watch has called a tool: %s, %v", out, err)
	}
	if out, err := as(second, "toolhost", "ps", "--socket", "/run/toolhost/toolhost.sock"); err == nil {
		t.Errorf("who is in no group has reached the socket: %s", out)
	}
	for _, file := range []string{"/var/lib/toolhost/tokens.json", "/var/lib/toolhost/token", "/home/" + someone + "/token"} {
		if out, err := as(second, "cat", file); err == nil {
			t.Errorf("another user reads %s: %s", file, out)
		}
	}

	ended := alice.begin(t, "--url", url, "--token-file", "/home/"+someone+"/token", "slow")
	wait.Until(t, "the other one sees the call", func() bool {
		out, err := byToken(second, "ps")
		return err == nil && strings.Contains(out, "slow")
	})
	if out, err := as(someone, "toolhost", "ps", "--socket", "/run/toolhost/toolhost.sock"); err != nil || strings.Contains(out, "slow") {
		t.Errorf("by the socket the user is another identity than by the token: %s, %v", out, err)
	}
	run(t, "toolhost", "token", "revoke", someone)
	if r := ended(); r.Status == "ok" {
		t.Errorf("the call of a revoked token has ended %s", r.Status)
	}
	noneLeft(t, "1000003")
	if out, err := byToken(someone, "ps"); err == nil {
		t.Errorf("a revoked token lets in: %s", out)
	}
	var out string
	wait.Until(t, "the chain has what was done with the tokens", func() bool { // which the daemon looks at every few seconds
		out = run(t, "toolhost", "log", "verify", "--records")
		return !strings.Contains(out, "not in it yet")
	})
	for _, record := range []string{`"action":"token.create"`, `"who":"uid 0","action":"token.revoke","what":"` + someone, `"who":"token ` + second + `","action":"access.refused"`, `"action":"daemon.start"`, "the chain holds"} {
		if !strings.Contains(out, record) {
			t.Errorf("no %s in the chain: %s", record, out)
		}
	}
	run(t, "toolhost", "token", "revoke", second)
	_ = os.Remove("/etc/toolhost/conf.d/team.yaml")
	run(t, "gpasswd", "--delete", someone, "toolhost")
	run(t, "systemctl", "restart", "toolhost.service")
}
