package service

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// testUserService is the daemon as a user's own service, without a session.
func testUserService(t *testing.T) {
	run(t, "loginctl", "enable-linger", someone)
	uid := strings.TrimSpace(run(t, "id", "--user", someone))
	wait.Until(t, "the user's manager runs", func() bool {
		_, err := os.Stat("/run/user/" + uid + "/systemd/private")
		return err == nil
	})
	slice := "/sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/"
	h := host{
		name: someone, as: []string{"runuser", "-u", someone, "--", "env", "XDG_RUNTIME_DIR=/run/user/" + uid, "HOME=/home/" + someone},
		top: slice + "app.slice/toolhost.service",
	}
	dir := "/home/" + someone + "/.config/toolhost"
	write(t, filepath.Join(dir, "toolhost.yaml"), tools)
	run(t, "chown", "-R", someone+":", "/home/"+someone)
	manage := func(args ...string) {
		t.Helper()
		if _, err := finish(h.command(t, append([]string{"systemctl", "--user"}, args...)...)); err != nil {
			t.Fatal(err)
		}
	}
	manage("enable", "--now", "toolhost.service")
	sameForAll(t, h)
	manage("disable", "--now", "toolhost.service")
	noneLeft(t, "1000003")
	if _, err := os.Stat(h.top); err == nil {
		t.Errorf("the cgroup %s is left", h.top)
	}
	run(t, "loginctl", "disable-linger", someone)
}

// testWithoutSystemd is the daemon of a machine whose first process is another:
// nothing of systemd's is in sight, and its cgroup is nobody's to delegate.
func testWithoutSystemd(t *testing.T) {
	const top = "/sys/fs/cgroup/plain"
	run(t, "mkdir", "-p", top)
	const begin = `echo $$ >/sys/fs/cgroup/plain/cgroup.procs
mount -t tmpfs -o mode=755 none /run
exec toolhost serve --config /etc/toolhost/toolhost.yaml --state none --log-level warn`
	cmd := command(t.Context(), "unshare", "--mount", "sh", "-c", begin)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A command has a cgroup of its own, too, which a login has there.
	const enter = `mkdir /sys/fs/cgroup/plain-$$ && echo $$ >/sys/fs/cgroup/plain-$$/cgroup.procs && exec nsenter --mount=/proc/$0/ns/mnt -- "$@"`
	h := host{name: "plain", as: []string{"sh", "-c", enter, strconv.Itoa(cmd.Process.Pid)}, top: top}
	wait.Until(t, "the daemon answers", func() bool {
		_, err := finish(h.command(t, "toolhost", "ps"))
		return err == nil
	})
	sameForAll(t, h)
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	noneLeft(t, "1000003")
	for _, pattern := range []string{top + "*/toolhost-supervisor-*", top + "*"} {
		empty, _ := filepath.Glob(pattern)
		for _, dir := range empty {
			if err := os.Remove(dir); err != nil {
				t.Errorf("something is left: %v", err)
			}
		}
	}
}

// sameForAll is what must not differ from root's service.
func sameForAll(t *testing.T, h host) {
	t.Helper()
	reference, r := root.call(t, "hello"), h.call(t, "hello")
	// systemd delegates no io to users.
	without := slices.DeleteFunc(reference.Sandbox.Enforced, func(f string) bool { return f == "cgroup.io" && h.name == someone })
	want(t, r, "ok")
	if r.Sandbox.Cgroup != reference.Sandbox.Cgroup || !slices.Equal(r.Sandbox.Enforced, without) || len(r.degraded()) > 0 {
		t.Errorf("sandbox of %s: %+v, of root: %+v", h.name, r.Sandbox, reference.Sandbox)
	}
	testLimits(t, h)
	testDeadline(t, h)
	outOfMemory(t, h)
	green(t, h)
}
