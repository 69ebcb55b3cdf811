package cgroup

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// newBase makes a cgroup2 directory of the test's own beside everything else
// and returns it with its cgroup path.
func newBase(t *testing.T) (*dir, string) {
	t.Helper()
	needRoot(t)
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	own, err := readMembership()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := openVerified(mounts, isV2, own.v2)
	if err != nil {
		t.Fatal(err)
	}
	name := "test-" + randomHex()
	if err := parent.mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	base, err := parent.sub(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		base.close()
		if err := rmdirRetry(parent, name); err != nil {
			t.Error(err)
		}
		parent.close()
	})
	return base, path.Join(own.v2, name)
}

// needControllers makes sure that v2's controllers reach base.
func needControllers(t *testing.T) {
	t.Helper()
	r := openRoot(t, Options{}) // enables them at the true root
	need(t, "controllers in cgroup2", r.Mode() == ModeV2, inVM())
}

func openIn(t *testing.T, c *child) opened {
	t.Helper()
	var o opened
	if err := json.Unmarshal([]byte(c.line()), &o); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	if o.Err != "" {
		t.Fatal(o.Err)
	}
	return o
}

// checkEvacuated returns the name of the leaf that the process moved to.
func checkEvacuated(t *testing.T, o opened, base string) string {
	t.Helper()
	leaf := path.Base(o.Own)
	if o.Mode != "v2" || path.Dir(o.Own) != base || !leafName().MatchString(leaf) || !toolsName().MatchString(path.Base(path.Dir(o.Born))) || path.Dir(path.Dir(o.Born)) != base {
		t.Errorf("opened %+v; want a leaf and a directory for tools in %s", o, base)
	}
	if got := strings.Join(o.Controllers, " "); got != "cpu io memory pids" {
		t.Errorf("controllers %q", got)
	}
	return leaf
}

func TestOpenDelegated(t *testing.T) {
	needControllers(t)
	base, p := newBase(t)
	if err := unix.Fsetxattr(base.fd, "user.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	procs := base.path + "/cgroup.procs"
	other := spawn(t, nil, "idle").expect("ready") // somebody else in the unit
	if err := base.write("cgroup.procs", itoa(int64(other.pid()))); err != nil {
		t.Fatal(err)
	}
	leaf := checkEvacuated(t, openIn(t, spawn(t, nil, "open", procs, "0")), p)
	if weight, err := base.read(leaf + "/cpu.weight"); err != nil || strings.TrimSpace(weight) != itoa(supervisorWeight) {
		t.Errorf("the supervisor's weight: %q, %v", weight, err)
	}

	// A second one, started from the first one's leaf, stays in it.
	o := openIn(t, spawn(t, nil, "open", base.join(leaf)+"/cgroup.procs", "0"))
	if again := checkEvacuated(t, o, p); again != leaf {
		t.Errorf("moved from %s to %s", leaf, again)
	}
	_ = other.cmd.Process.Kill()
	_ = other.wait()
}

// As systemd delegates to User=: the directory and some files are the user's.
func TestOpenDelegatedUnprivileged(t *testing.T) {
	needControllers(t)
	const uid = 65534
	base, p := newBase(t)
	if err := unix.Fsetxattr(base.fd, "user.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if err := os.Chown(base.join(f), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	o := openIn(t, spawn(t, nil, "open", base.path+"/cgroup.procs", "65534"))
	checkEvacuated(t, o, p)
}

func TestOpenAtNamespaceRoot(t *testing.T) {
	needControllers(t)
	base, p := newBase(t)
	inside := spawn(t, nil, "idle").expect("ready")
	if err := base.write("cgroup.procs", itoa(int64(inside.pid()))); err != nil {
		t.Fatal(err)
	}
	// The namespace is unshared after the birth in base.
	cmd := inNamespace(roleCommand("open", "", "0"))
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, base.fd
	o := openIn(t, spawnCommand(t, nil, cmd))
	checkEvacuated(t, o, "/")
	if pids, err := readPids(base); err != nil || len(pids) != 0 {
		t.Errorf("still in %s: %v, %v", p, pids, err)
	}
	_ = inside.cmd.Process.Kill()
	_ = inside.wait()
}

func TestOpenParent(t *testing.T) {
	needControllers(t)
	_, p := newBase(t)
	r := openRoot(t, Options{Parent: p})
	if !strings.Contains(r.Path(), p+"/"+toolsPrefix) {
		t.Errorf("path %s is not below %s", r.Path(), p)
	}
	g := newGroup(t, r, "below", Limits{Pids: 20})
	spawn(t, g, "idle").expect("ready")
}

func TestOpenParentWithOthersInIt(t *testing.T) {
	needControllers(t)
	base, p := newBase(t)
	other := spawn(t, nil, "idle").expect("ready")
	if err := base.write("cgroup.procs", itoa(int64(other.pid()))); err != nil {
		t.Fatal(err)
	}
	_, err := Open(wait.Context(t), Options{Parent: p})
	checkUnavailable(t, err, p)
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("error %v", err)
	}
	_ = other.cmd.Process.Kill()
	_ = other.wait()
}

// What is joined to a mount point must be a plain path from the root.
func TestOpenParentOfNoPlainPath(t *testing.T) {
	for _, parent := range []string{"nonesuch/x", "../..", "/a/../b", "/../x", "//a", "/a/./b", "."} {
		r, err := Open(wait.Context(t), Options{Parent: parent})
		if err == nil {
			t.Errorf("%q: no error", parent)
			_ = r.Close()
		} else if !strings.Contains(err.Error(), "is not a plain path from the root") {
			t.Errorf("%q: %v", parent, err)
		}
	}
}

func TestOpenParentMissing(t *testing.T) {
	needRoot(t)
	const parent = "/no/such/cgroup"
	_, err := Open(wait.Context(t), Options{Parent: parent})
	checkUnavailable(t, err, parent)
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("error %v", err)
	}
	// The directory that is missing, as an admin makes it, and nothing else.
	for _, part := range []string{"it does not exist in ", "mkdir -p /", parent + ") and in every other hierarchy"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if strings.Contains(err.Error(), "root") || strings.Contains(err.Error(), "boot") {
		t.Errorf("the remedy does not fit: %v", err)
	}
	t.Log(err)
}

func checkUnavailable(t *testing.T, err error, value string) {
	t.Helper()
	u, ok := errors.AsType[*UnavailableError](err)
	if !ok {
		t.Fatalf("error %v is not an UnavailableError", err)
	}
	if s := u.Error(); strings.Contains(s, "\n") || !strings.Contains(s, value) || u.Remedy == "" {
		t.Errorf("message %q", s)
	}
}

// An unprivileged process without a delegated cgroup or a bus gets told so.
func TestOpenNowhere(t *testing.T) {
	needRoot(t)
	cmd := roleCommand("open", "", "65534")
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR=", "DBUS_SESSION_BUS_ADDRESS=")
	c := spawnCommand(t, nil, cmd)
	var o opened
	if err := json.Unmarshal([]byte(c.line()), &o); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(o.Err, "cannot use cgroups: ") || strings.Contains(o.Err, "\n") {
		t.Errorf("opened %+v", o)
	}
}

func TestRefresh(t *testing.T) {
	needRoot(t)
	base, _ := newBase(t)
	if err := base.mkdir("killed", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := base.write("killed/cgroup.kill", "1"); err != nil {
		t.Fatal(err)
	}
	r := openRoot(t, Options{})
	if r.Mode() == ModeV2 {
		// It works where we are; in a killed cgroup outside a delegated one
		// toolhost would not.
		if err := unix.Fsetxattr(base.fd, "user.delegate", []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	c := spawn(t, nil, "doomed", base.path+"/killed/cgroup.procs")
	first, second := c.line(), c.line()
	t.Logf("before Refresh: %s", first) // depends on the kernel
	if second == "died at birth" {
		t.Error("a child died at birth after Refresh")
	}
	if err := c.wait(); err != nil {
		t.Error(err)
	}
}
