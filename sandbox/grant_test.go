package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A call acts on what it is granted with the caller's rights, and on nothing
// else of the caller's.

func TestReadingWhatIsGranted(t *testing.T) {
	w := enter(t)
	dir, outside := realTemp(t), realTemp(t)
	mustWrite(t, dir+"/file", "content")
	must(t, os.WriteFile(dir+"/private", []byte("the caller's"), 0o600))
	mustWrite(t, outside+"/secret", "secret")
	must(t, os.Symlink(outside+"/secret", dir+"/absolute"))
	must(t, os.Symlink("../../"+filepath.Base(filepath.Dir(outside))+"/"+filepath.Base(outside)+"/secret", dir+"/relative"))
	must(t, os.Symlink("/proc/1/root"+outside+"/secret", dir+"/magic"))
	p := w.plan(Policy{Read: []string{dir}}, Task{})
	w.wantDo(p,
		"read:"+dir+"/file", "content", "read:"+dir+"/private", "the caller's", "stat:"+dir+"/private", "1000 1000 0600",
		"append:"+dir+"/file", "error EROFS", "make:"+dir+"/new", "error EROFS", "rm:"+dir+"/file", "error EROFS",
		"read:"+dir+"/absolute", "error ENOENT", "read:"+dir+"/relative", "error ENOENT", "read:"+outside+"/secret", "error ENOENT",
		"list:"+filepath.Dir(filepath.Dir(dir)), filepath.Base(filepath.Dir(dir)),
		"make:"+filepath.Dir(dir)+"/beside", "ok", // in its own /tmp
	)
	if _, err := os.Lstat(filepath.Dir(dir) + "/beside"); err == nil {
		t.Error("a file beside the granted folder is on the host")
	}
	if got := w.do(p, "read:"+dir+"/magic")[0]; got == "secret" {
		t.Error("PID 1's root is the host's")
	}
}

func TestWritingWhatIsGranted(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	mustWrite(t, dir+"/old", "old")
	p := w.plan(Policy{Write: []string{dir}}, Task{})
	w.wantDo(p, "make:"+dir+"/new", "ok", "mkdir:"+dir+"/folder", "ok", "make:"+dir+"/folder/x", "ok", "append:"+dir+"/old", "ok", "stat:"+dir+"/new", "1000 1000 0640")
	for name, mode := range map[string]os.FileMode{"new": 0o640, "folder": 0o750 | os.ModeDir, "folder/x": 0o640, "old": 0o644} {
		info, err := os.Lstat(filepath.Join(dir, name))
		must(t, err)
		st := info.Sys().(*syscall.Stat_t)
		if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() || info.Mode() != mode {
			t.Errorf("%s is %d:%d with %v on the host, want the caller's with %v", name, st.Uid, st.Gid, info.Mode(), mode)
		}
	}
	if text, err := os.ReadFile(dir + "/old"); err != nil || string(text) != "old+" {
		t.Errorf("old file has %q, %v", text, err)
	}
	w.wantDo(w.plan(Policy{Read: []string{dir}}, Task{}), "read:"+dir+"/new", "made", "rm:"+dir+"/new", "error EROFS")
}

// Files of others stay theirs: their owner cannot even be named.
func TestOthersFilesInAGrant(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to make files of others)")
	}
	w := enter(t)
	dir := realTemp(t)
	must(t, os.WriteFile(dir+"/other", []byte("other's"), 0o600))
	must(t, os.Chown(dir+"/other", 4242, 4242))
	w.wantDo(w.plan(Policy{Write: []string{dir}}, Task{}), "read:"+dir+"/other", "error EACCES", "stat:"+dir+"/other", "65534 65534 0600")
}

func TestGrantOfAFile(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	mustWrite(t, dir+"/read", "r")
	mustWrite(t, dir+"/write", "w")
	mustWrite(t, dir+"/beside", "b")
	w.wantDo(w.plan(Policy{Read: []string{dir + "/read"}, Write: []string{dir + "/write"}}, Task{}),
		"read:"+dir+"/read", "r", "append:"+dir+"/read", "error EROFS", "append:"+dir+"/write", "ok", "read:"+dir+"/write", "w+",
		"list:"+dir, "read write", "read:"+dir+"/beside", "error ENOENT", "rm:"+dir+"/write", "error EBUSY")
	if text, err := os.ReadFile(dir + "/write"); err != nil || string(text) != "w+" {
		t.Errorf("on the host: %q, %v", text, err)
	}
}

func TestNestedGrants(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	for _, path := range []string{"/read/write/read", "/write/read/write"} {
		must(t, os.MkdirAll(dir+path, 0o755))
	}
	mustWrite(t, dir+"/write/file", "f")
	w.wantDo(w.plan(Policy{
		Read:  []string{dir + "/read", dir + "/read/write/read", dir + "/write/read", dir + "/write/file"},
		Write: []string{dir + "/write/read/write", dir + "/write", dir + "/read/write"},
	}, Task{}),
		"make:"+dir+"/read/x", "error EROFS", "make:"+dir+"/read/write/x", "ok", "make:"+dir+"/read/write/read/x", "error EROFS",
		"make:"+dir+"/write/x", "ok", "make:"+dir+"/write/read/x", "error EROFS", "make:"+dir+"/write/read/write/x", "ok",
		"append:"+dir+"/write/file", "error EROFS")
	for path, want := range map[string]bool{"/read/write/x": true, "/write/x": true, "/write/read/write/x": true, "/read/x": false, "/write/read/x": false} {
		if _, err := os.Lstat(dir + path); (err == nil) != want {
			t.Errorf("%s on the host: %v", path, err)
		}
	}
}

func TestGrantByALink(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, os.Mkdir(dir+"/real", 0o755))
	mustWrite(t, dir+"/real/file", "content")
	must(t, os.Symlink("real", dir+"/link"))
	w.wantDo(w.plan(Policy{Read: []string{dir + "/link"}}, Task{}), "read:"+dir+"/link/file", "content", "read:"+dir+"/real/file", "error ENOENT")
}

// Where the call sees the link itself, the grant is where that leads.
func TestGrantByALinkThatIsSeen(t *testing.T) {
	w := enter(t)
	dir, outside, further := realTemp(t), realTemp(t), realTemp(t)
	mustWrite(t, outside+"/file", "content")
	mustWrite(t, further+"/file", "further")
	must(t, os.Symlink(outside, dir+"/link"))
	must(t, os.Symlink(further, outside+"/next"))
	must(t, os.Symlink(outside+"/file", dir+"/single"))
	w.wantDo(w.plan(Policy{Read: []string{dir, dir + "/link/next"}, Write: []string{dir + "/link"}}, Task{}),
		"read:"+dir+"/link/file", "content", "read:"+dir+"/link/next/file", "further", "make:"+dir+"/link/new", "ok", "make:"+dir+"/new", "error EROFS",
		"make:"+dir+"/link/next/new", "error EROFS")
	w.wantDo(w.plan(Policy{Read: []string{dir, dir + "/single"}}, Task{}), "read:"+dir+"/single", "content", "list:"+outside, "file")
	w.wantDo(w.plan(Policy{Read: []string{dir + "/link", dir + "/link/next"}}, Task{}), "read:"+dir+"/link/next/file", "further")
}

// So it is with links of the runtime's, and of the sandbox's own root.
func TestPlacesOfGrants(t *testing.T) {
	dir := realTemp(t)
	must(t, os.MkdirAll(dir+"/usr/local", 0o755))
	must(t, os.Symlink("../../opt/foo", dir+"/usr/local/foo"))
	must(t, os.Symlink("/usr/x", dir+"/hidden"))
	l := layout{binds: []string{dir + "/usr"}, links: []link{{"../../pki/certs", dir + "/etc/ssl/certs"}}}
	for target, want := range map[string]string{
		dir + "/usr/local/foo":        dir + "/opt/foo",
		dir + "/usr/local/foo/x":      dir + "/opt/foo/x",
		dir + "/etc/ssl/certs/bundle": dir + "/pki/certs/bundle",
		dir + "/hidden":               dir + "/hidden",
		dir + "/usr/local":            dir + "/usr/local",
	} {
		got := Resolved{grants: []grant{{source: want, target: target}}}.place(l)
		if got[0].at != want {
			t.Errorf("%s is at %s, want %s", target, got[0].at, want)
		}
		got = Resolved{grants: []grant{{source: "elsewhere", target: target}}}.place(l)
		if got[0].at != target {
			t.Errorf("%s, which led elsewhere when it was opened, is at %s", target, got[0].at)
		}
	}
}

// A tool that may write a folder cannot place a grant below it over the programs of another
// call: where a link leads by its text is not where it leads.
func TestALinkPlacesNothingOverPrograms(t *testing.T) {
	dir := realTemp(t)
	up := strings.Repeat("../", strings.Count(dir, "/")+1)
	deep := strings.TrimSuffix(strings.Repeat("d/", strings.Count(dir, "/")+1), "/")
	must(t, os.MkdirAll(filepath.Join(dir, deep), 0o755))
	must(t, os.MkdirAll(dir+"/usr/bin", 0o755)) // which the link leads to
	must(t, os.Symlink(deep, dir+"/s"))
	must(t, os.Symlink("s/"+up+"usr/bin", dir+"/modules"))
	r, err := Policy{Read: []string{dir, dir + "/modules"}}.Resolve()
	must(t, err)
	for _, g := range r.place(layout{binds: []string{"/usr"}}) {
		if g.at == "/usr/bin" {
			t.Errorf("%s is at %s", g.source, g.at)
		}
	}
}

func TestStorageIsBounded(t *testing.T) {
	w := enter(t)
	p := w.plan(Policy{}, Task{Storage: Storage{WorkspaceBytes: 256 << 10, TmpBytes: 128 << 10, ShmBytes: 64 << 10}})
	w.wantDo(p, "fill:"+Workspace+"/x", "ENOSPC after 256", "fill:/tmp/toolhost-fill", "ENOSPC after 128", "fill:/dev/shm/toolhost-fill", "ENOSPC after 64", "list:"+Workspace, "x")
	for _, path := range []string{Workspace, "/tmp/toolhost-fill", "/dev/shm/toolhost-fill"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is on the host", path)
		}
	}
	w.wantDo(p, "list:"+Workspace, "", "list:/tmp", "", "list:/dev/shm", "")
}

// Nor does one sandbox see the queues of another.
func TestMessageQueues(t *testing.T) {
	w := enter(t)
	for range 2 {
		w.wantDo(w.plan(Policy{}, Task{}), "list:/dev/mqueue", "", "queue:own", "ok", "list:/dev/mqueue", "own", "rm:/dev/mqueue/own", "error EROFS")
	}
}

func TestStoragesFilesAreBounded(t *testing.T) {
	w := enter(t)
	w.wantDo(w.plan(Policy{}, Task{Storage: Storage{WorkspaceInodes: 3}}),
		"make:"+Workspace+"/1", "ok", "make:"+Workspace+"/2", "ok", "make:"+Workspace+"/3", "error ENOSPC")
}

func TestTheRootIsReadOnly(t *testing.T) {
	w := enter(t)
	w.wantDo(w.plan(Policy{}, Task{}),
		"append:/tool", "error EACCES", "make:/etc/x", "error EROFS", "append:/etc/passwd", "error EACCES", "make:/proc/x", "error ENOENT",
		"append:/proc/sys/kernel/core_pattern", "error EACCES", "read:/proc/cmdline", "", "list:/home", "error ENOENT", "read:/etc/shadow", "error ENOENT",
		"mkdir:"+Workspace+"/d", "ok", "make:/dev/x", "error EROFS")
}

// What tools leave in granted folders cannot bend where later calls' mounts
// go, nor what they show.
func TestHostileFolderCannotBendLaterMounts(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, os.MkdirAll(dir+"/sub/deep", 0o755))
	later := w.plan(Policy{Write: []string{dir}, Read: []string{dir + "/sub/deep"}}, Task{Programs: []Program{{"/bin/sh", dir + "/sub/sh"}}})
	w.wantDo(w.plan(Policy{Write: []string{dir}}, Task{}), "rm:"+dir+"/sub/deep", "ok", "rm:"+dir+"/sub", "ok", "link:/usr>"+dir+"/sub", "ok")
	c := w.start(later, "do", []string{"list:" + dir + "/sub"}, nil)
	if c.err == nil {
		c.err = c.Started(wait.Context(t))
	}
	if c.err == nil {
		t.Error("a mount followed a tool's link")
	}
	wantError(t, c.err, "cannot ", dir+"/sub")
}
