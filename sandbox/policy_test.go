package sandbox

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPolicyNamesAreChecked(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		parts  []string
	}{
		{Policy{Tier: "vm"}, []string{"tier", `"vm"`, "native, none"}},
		{Policy{Network: "lan"}, []string{"network", `"lan"`, "none, host"}},
		{Policy{Allow: []string{SharedUID, "all"}}, []string{`"all"`, SharedUID}},
		{Policy{Allow: []string{FeatureLandlock}}, []string{`"landlock"`, SharedUID}},
		{Policy{Require: []string{FeatureSeccomp}}, []string{`"seccomp"`, "landlock, landlockScope"}},
		{Policy{Require: []string{""}}, []string{`""`, "landlock"}},
	} {
		_, err := c.policy.Resolve()
		wantError(t, err, c.parts...)
	}
	for _, policy := range []Policy{
		{},
		{Tier: TierNative, Network: NetworkNone},
		{Tier: TierNone, Network: NetworkHost},
		{Strict: true, Allow: []string{SharedUID, SharedUID}, Require: []string{FeatureLandlock, FeatureLandlockScope}},
	} {
		if _, err := policy.Resolve(); err != nil {
			t.Errorf("%+v: %v", policy, err)
		}
	}
}

func TestGrantsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	must(t, os.Symlink(dir+"/fifo", dir+"/tofifo"))
	must(t, os.Symlink("nowhere", dir+"/dangling"))
	for _, c := range []struct {
		path  string
		parts []string
	}{
		{"", []string{"empty path"}},
		{dir + "/missing", []string{dir + "/missing", "no such file"}},
		{dir + "/dangling", []string{dir + "/dangling", "no such file"}},
		{dir + "/fifo", []string{dir + "/fifo", "neither a file nor a folder"}},
		{dir + "/tofifo", []string{dir + "/tofifo", "neither a file nor a folder"}},
		{"/", []string{"cannot grant /:", "name what is needed below it"}},
		{"//", []string{"cannot grant /:"}},
		{"/tmp", []string{"cannot grant /tmp"}},
		{"/tmp/.", []string{"cannot grant /tmp"}},
		{dir + strings.Repeat("/..", 99), []string{"cannot grant /:"}},
		{"/usr", []string{"cannot grant /usr"}},
		{"/etc", []string{"cannot grant /etc"}},
		{"/run", []string{"cannot grant /run"}},
		{"/proc", []string{"cannot grant /proc", "always the sandbox's own"}},
		{"/proc/self", []string{"cannot grant /proc/self: /proc is"}},
		{"/sys", []string{"/sys is always"}},
		{"/dev/null", []string{"cannot grant /dev/null: /dev is"}},
	} {
		for _, policy := range []Policy{{Read: []string{c.path}}, {Write: []string{c.path}}} {
			_, err := policy.Resolve()
			wantError(t, err, c.parts...)
		}
	}
}

func resolve(t testing.TB, p Policy) Resolved {
	t.Helper()
	r, err := p.Resolve()
	must(t, err)
	return r
}

// realTemp is a folder whose path has no links.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// A call sees what it was granted under the name that it was granted by.
func TestLinkedPathsKeepTheirName(t *testing.T) {
	dir := realTemp(t)
	must(t, os.Mkdir(dir+"/real", 0o755))
	mustWrite(t, dir+"/real/file", "")
	must(t, os.Symlink("real", dir+"/link"))
	r := resolve(t, Policy{Read: []string{dir + "/link/file", dir + "/link"}})
	want := []grant{{source: dir + "/real", target: dir + "/link"}, {source: dir + "/real/file", target: dir + "/link/file"}}
	if !reflect.DeepEqual(r.grants, want) {
		t.Errorf("grants %+v, want %+v", r.grants, want)
	}
}

func TestRootsLinksAreReplaced(t *testing.T) {
	to, err := os.Readlink("/bin")
	if err != nil || to != "usr/bin" {
		t.Skip("missing: a merged /usr (/bin is a link to usr/bin)")
	}
	r := resolve(t, Policy{Read: []string{"/bin/sh"}})
	if len(r.grants) != 1 || r.grants[0].target != "/usr/bin/sh" || !r.Covers("/usr/bin/sh") {
		t.Errorf("grants %+v", r.grants)
	}
	if got := resolve(t, Policy{Read: []string{"/bin/sh"}, Write: []string{"/usr/bin/sh"}}).grants; len(got) != 1 || !got[0].write {
		t.Errorf("two names of one path: %+v", got)
	}
	for path, want := range map[string]string{
		"/bin": "/usr/bin", "/bin/x/y": "/usr/bin/x/y", "/usr/bin/x": "/usr/bin/x", "/binary": "/binary", "/": "/", "/tmp/bin": "/tmp/bin",
	} {
		if got := withoutLinks(path); got != want {
			t.Errorf("withoutLinks(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestGrantsAreMergedAndOrdered(t *testing.T) {
	dir := realTemp(t)
	for _, name := range []string{"/a", "/a/b", "/a-b", "/a/b/c"} {
		must(t, os.Mkdir(dir+name, 0o755))
	}
	mustWrite(t, dir+"/a/file", "")
	r := resolve(t, Policy{
		Read:  []string{dir + "/a/b/c", dir + "/a/file", dir + "/a-b", dir + "/a/b", dir + "/a/b/"},
		Write: []string{dir + "/a/b/../b/c", dir + "/a"},
	})
	want := []grant{
		{dir + "/a", dir + "/a", true},
		{dir + "/a-b", dir + "/a-b", false},
		{dir + "/a/b", dir + "/a/b", false},
		{dir + "/a/b/c", dir + "/a/b/c", true},
		{dir + "/a/file", dir + "/a/file", false},
	}
	if !reflect.DeepEqual(r.grants, want) {
		t.Errorf("grants %+v\nwant %+v", r.grants, want)
	}
	for i, g := range r.grants {
		for _, later := range r.grants[i+1:] {
			if Within(g.target, later.target) {
				t.Errorf("%s comes before %s, which it is below", g.target, later.target)
			}
		}
	}
}

func TestRelativeGrants(t *testing.T) {
	dir := realTemp(t)
	t.Chdir(dir)
	must(t, os.Mkdir("sub", 0o755))
	r := resolve(t, Policy{Read: []string{"sub"}, Write: []string{"."}})
	if len(r.grants) != 2 || r.grants[0].target != dir || r.grants[1].target != dir+"/sub" {
		t.Errorf("grants %+v", r.grants)
	}
}

func TestCovers(t *testing.T) {
	dir := realTemp(t)
	r := resolve(t, Policy{Read: []string{dir}})
	for path, want := range map[string]bool{
		dir: true, dir + "/x": true, dir + "x": false, filepath.Dir(dir): false, "/": false, "/usr": false,
	} {
		if r.Covers(path) != want {
			t.Errorf("Covers(%s) = %v", path, !want)
		}
	}
}

func TestShowableAndOwnFolders(t *testing.T) {
	for path, want := range map[string][2]bool{ // showable, own folder
		"/": {false, true}, "/tmp": {false, true}, Workspace: {false, true}, "/usr": {false, false}, "/proc/1": {false, false},
		socketDir: {false, false}, socketDir + "/x": {false, false}, "/run/user": {true, false}, "/tmp/x": {true, false}, "/home/u": {true, false},
	} {
		if got := [2]bool{Showable(path), OwnFolder(path)}; got != want {
			t.Errorf("%s: showable and own %v, want %v", path, got, want)
		}
	}
	if !resolve(t, Policy{}).Confines() || resolve(t, Policy{Tier: TierNone}).Confines() {
		t.Error("the native tier confines, and none does not")
	}
}

func FuzzWithin(f *testing.F) {
	f.Add("/a/b", "/a")
	f.Add("/ab", "/a")
	f.Add("/", "/")
	f.Fuzz(func(t *testing.T, path, dir string) {
		path, dir = filepath.Clean("/"+path), filepath.Clean("/"+dir)
		rel, err := filepath.Rel(dir, path)
		want := err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		if Within(path, dir) != want {
			t.Fatalf("within(%s, %s) = %v", path, dir, !want)
		}
	})
}

func TestLayoutOfARoot(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"/usr", "/lib64", "/etc/ssl/certs", "/etc/java-21-openjdk", "/etc/java", "/home"} {
		must(t, os.MkdirAll(root+dir, 0o755))
	}
	must(t, os.Symlink("usr/bin", root+"/bin"))
	must(t, os.Symlink("/usr/share/zoneinfo/UTC", root+"/etc/localtime"))
	mustWrite(t, root+"/etc/passwd", "")
	l := findLayout(root)
	if want := []string{"/usr", "/lib64", "/etc/ssl/certs", "/etc/java-21-openjdk"}; !slices.Equal(l.binds, want) {
		t.Errorf("binds %v, want %v", l.binds, want)
	}
	if want := []link{{"usr/bin", "/bin"}, {"/usr/share/zoneinfo/UTC", "/etc/localtime"}}; !slices.Equal(l.links, want) {
		t.Errorf("links %v, want %v", l.links, want)
	}
	f := Features{layout: l}
	for path, want := range map[string]bool{"/usr": true, "/usr/bin/x": true, "/usr/../home": false, "/home": false, "/etc/ssl/certs": false, "/usrx": false} {
		if f.Runtime(path) != want {
			t.Errorf("Runtime(%s) = %v", path, !want)
		}
	}
}
