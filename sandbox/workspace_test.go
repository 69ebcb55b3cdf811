package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// dataFolder is as a host makes one for a tool.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir := realTemp(t) + "/data"
	must(t, os.Mkdir(dir, 0o700))
	return dir
}

// What a call leaves in a workspace that persists is the caller's on the host,
// and the next call's own, whichever user that is.
func TestWorkspaceThatPersists(t *testing.T) {
	w := enter(t)
	dir := dataFolder(t)
	mustWrite(t, dir+"/old", "old")
	p := w.plan(Policy{Workspace: dir}, Task{})
	w.wantDo(p, "stat:"+Workspace, "1000 1000 0700", "read:"+Workspace+"/old", "old", "make:"+Workspace+"/new", "ok",
		"mkdir:"+Workspace+"/folder", "ok", "stat:"+Workspace+"/new", "1000 1000 0640", "list:"+dir, "error ENOENT")
	held := w.run(p, "echo") // so that the next call is another user
	w.wantDo(p, "read:"+Workspace+"/new", "made", "append:"+Workspace+"/new", "ok", "rm:"+Workspace+"/folder", "ok")
	held.Kill()
	for name, mode := range map[string]os.FileMode{"new": 0o640, "old": 0o644} {
		info, err := os.Lstat(dir + "/" + name)
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() || info.Mode() != mode {
			t.Errorf("%s is %d:%d with %v on the host, want the caller's with %v", name, st.Uid, st.Gid, info.Mode(), mode)
		}
	}
	if text, err := os.ReadFile(dir + "/new"); err != nil || string(text) != "made+" {
		t.Errorf("new file has %q, %v", text, err)
	}
	w.wantDo(w.plan(Policy{}, Task{}), "list:"+Workspace, "")
}

// It is nodev and nosuid, and gives no rights by modes either.
func TestWorkspaceThatPersistsGivesNoRights(t *testing.T) {
	w := enter(t)
	dir := dataFolder(t)
	w.wantDo(w.plan(Policy{Workspace: dir}, Task{}),
		"mountflags:"+Workspace, "nodev nosuid", "setuid:"+Workspace+"/x", "error EPERM")
	if got := w.do(w.plan(Policy{Workspace: dir}, Task{}), "mknod:"+Workspace+"/n")[0]; got != "error EACCES" && got != "error EPERM" {
		t.Errorf("making a device: %s", got) // Landlock or the kernel
	}
	if os.Geteuid() != 0 {
		return
	}
	must(t, unix.Mknod(dir+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	w.wantDo(w.plan(Policy{Workspace: dir}, Task{}), "read:"+Workspace+"/null", "error EACCES")
}

// A workspace that persists is not handed over: it is not what a call left.
func TestWorkspaceThatPersistsStays(t *testing.T) {
	w := enter(t)
	c := w.run(w.plan(Policy{Workspace: dataFolder(t)}, Task{}), "echo")
	if c.Workspace() != nil || c.SocketDir() == nil {
		t.Errorf("workspace %v, socket folder %v", c.Workspace(), c.SocketDir())
	}
}

func TestWorkspaceSharedByCalls(t *testing.T) {
	w := enter(t)
	dir := dataFolder(t)
	p := w.plan(Policy{Workspace: dir}, Task{})
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		all.Go(func() { w.wantDo(p, "make:"+Workspace+"/"+name, "ok") })
	}
	all.Wait()
	w.wantDo(p, "list:"+Workspace, "a b c d")
}

func TestWorkspaceBesideGrants(t *testing.T) {
	w := enter(t)
	dir, data := realTemp(t), dataFolder(t)
	mustWrite(t, dir+"/file", "content")
	w.wantDo(w.plan(Policy{Read: []string{dir}, Workspace: data}, Task{}),
		"read:"+dir+"/file", "content", "make:"+dir+"/x", "error EROFS", "make:"+Workspace+"/x", "ok")
}

// The tools' programs may fill a folder with anything; none of it leads out.
func TestHostileWorkspace(t *testing.T) {
	w := enter(t)
	dir, outside := dataFolder(t), realTemp(t)
	mustWrite(t, outside+"/secret", "secret")
	p := w.plan(Policy{Workspace: dir}, Task{})
	w.wantDo(p, "link:"+outside+">"+Workspace+"/out", "ok", "link:/proc/1/root>"+Workspace+"/root", "ok")
	w.wantDo(p, "read:"+Workspace+"/out/secret", "error ENOENT")
	if got := w.do(p, "read:"+Workspace+"/root"+outside+"/secret")[0]; got == "secret" {
		t.Error("a link in the workspace leads to the host's files")
	}
}

// What has become something else since it was resolved is not mounted.
func TestWorkspaceThatChanged(t *testing.T) {
	w := enter(t)
	change := map[string]func(dir string) error{
		"has become a link": func(dir string) error { return os.Symlink("/etc", dir) },
		"no longer a folder of this user's: not a directory": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"no such file": func(string) error { return nil },
	}
	if os.Geteuid() == 0 {
		change["no longer a folder of this user's: operation not permitted"] = func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o777), os.Chown(dir, 4242, 4242))
		}
	}
	for want, become := range change {
		dir := dataFolder(t)
		p := w.plan(Policy{Workspace: dir}, Task{})
		must(t, errors.Join(os.Remove(dir), become(dir)))
		c := w.start(p, "sleep", nil, nil)
		if c.err == nil {
			c.err = c.Started(wait.Context(t))
		}
		wantError(t, c.err, dir, want)
	}
}

func TestWorkspacesThatAreRefused(t *testing.T) {
	dir := realTemp(t)
	mustWrite(t, dir+"/file", "")
	must(t, os.Symlink(dir, dir+"/link"))
	cases := map[string][]string{
		dir + "/missing":         {dir + "/missing", "no such file", "make the folder first"},
		dir + "/missing/missing": {"no such file", "make the folder first"},
		dir + "/file":            {dir + "/file", "not a folder"},
		dir + "/link":            {dir + "/link", "or a link"},
		"/":                      {"the system's"},
		"/proc":                  {"the system's"},
		"/sys/kernel":            {"the system's"},
	}
	if os.Geteuid() == 0 {
		must(t, os.Mkdir(dir+"/others", 0o777))
		must(t, os.Chown(dir+"/others", 4242, 0))
		must(t, os.Mkdir(dir+"/group", 0o700))
		must(t, os.Chown(dir+"/group", 0, 4242))
		cases[dir+"/group"] = []string{"belongs to group 4242", "chgrp"}
		cases[dir+"/others"] = []string{dir + "/others", "belongs to user 4242", "of user 0"}
	}
	for path, parts := range cases {
		_, err := Policy{Workspace: path}.Resolve()
		wantError(t, err, append(parts, "cannot keep the workspace in")...)
	}
}

// Links on the way to the folder are followed once, when it is resolved.
func TestWorkspaceBelowALink(t *testing.T) {
	dir := realTemp(t)
	must(t, os.MkdirAll(dir+"/real/data", 0o700))
	must(t, os.Symlink("real", dir+"/link"))
	r := resolve(t, Policy{Workspace: dir + "/link/data"})
	if got := plan(t, r.policy, complete(true), Task{}).Receipt().Data; got != dir+"/real/data" {
		t.Errorf("the receipt says %q", got)
	}
	for path, want := range map[string]bool{dir + "/real/data": true, dir + "/link/data/x": true, dir + "/real": false, dir: false} {
		if got := r.MayWrite(path); got != want {
			t.Errorf("MayWrite(%s) = %v", path, got)
		}
	}
	if !r.WritesBelow(dir) || r.WritesBelow("/usr") || r.Covers(dir+"/real/data") {
		t.Error("what the workspace allows is not told right")
	}
}

func TestWorkspaceInThePlan(t *testing.T) {
	dir := dataFolder(t)
	p := plan(t, Policy{Workspace: dir, Write: []string{realTemp(t)}}, complete(true), Task{MemoryBytes: 1 << 30, Storage: Storage{WorkspaceBytes: 900 << 20}})
	want := wire.Stage{Source: dir, Write: true, Own: true, Map: true, MapUID: 7, MapGID: 8}
	if len(p.stage) != 2 || p.stage[0] != want || p.root.Workspace != "" {
		t.Errorf("stage %+v, workspace %q", p.stage, p.root.Workspace)
	}
	staged := slices.IndexFunc(p.root.Mounts, func(m wire.Mount) bool { return m.Target == Workspace })
	if m := p.root.Mounts[staged]; m.Kind != wire.MountStaged || m.Source != dir || !m.Write {
		t.Errorf("mount %+v", m)
	}
	if s := p.Storage(); s.WorkspaceBytes != 0 || s.WorkspaceInodes != 0 || s.TmpBytes != 1<<27 {
		t.Errorf("storage %+v, want no bounds of the workspace", s)
	}
	if r := p.Receipt(); r.Data != dir || len(r.Write) != 1 {
		t.Errorf("receipt %+v", r)
	}
}

// As of bound paths: only root can lend its rights to another user.
func TestWorkspaceOfTheUnprivileged(t *testing.T) {
	dir := dataFolder(t)
	_, err := resolve(t, Policy{Workspace: dir}).Plan(complete(false), Task{})
	wantMissing(t, err, FeatureOwnUID)
	wantError(t, err, "allow "+SharedUID)
	p := plan(t, Policy{Workspace: dir, Allow: []string{SharedUID}}, complete(false), Task{})
	if p.stage[0] != (wire.Stage{Source: dir, Write: true, Own: true, MapUID: 7, MapGID: 8}) || !slices.Contains(degraded(p.Receipt()), SharedUID) {
		t.Errorf("stage %+v, receipt %+v", p.stage, p.Receipt())
	}
}

func TestTierNoneHasNoWorkspace(t *testing.T) {
	dir := dataFolder(t)
	_, err := resolve(t, Policy{Tier: TierNone, Workspace: dir}).Plan(complete(true), Task{})
	if _, ok := errors.AsType[*UnconfinedError](err); !ok {
		t.Errorf("error %v", err)
	}
	wantError(t, err, "the workspace "+dir, "choose tier native")
}
