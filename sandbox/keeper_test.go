package sandbox

import (
	"errors"
	"os"
	"testing"
)

// What is own stays where it is: else a call could put its own in its place.
func TestFoldersAboveOwnFilesStay(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, errors.Join(os.MkdirAll(dir+"/p/etc/conf.d/sub", 0o700), os.MkdirAll(dir+"/p/var/lib/state", 0o700), os.MkdirAll(dir+"/p/src", 0o700)))
	for _, name := range []string{"etc/config", "etc/other", "etc/conf.d/a", "etc/conf.d/sub/b", "etc/conf.d/key", "var/lib/state/token"} {
		mustWrite(t, dir+"/p/"+name, name)
	}
	bind(t, dir+"/p", dir+"/elsewhere")
	bind(t, dir+"/p/src", dir+"/p/etc/mounted")
	own := Own{
		Hidden: []string{dir + "/p/var/lib/state", dir + "/p/etc/conf.d/key"},
		Fixed:  []string{dir + "/p/etc/config", dir + "/p/etc/conf.d", dir + "/p/var/lib/state"},
	}
	p, err := w.guarded(&Guard{}, Policy{Write: []string{dir}}, own)
	must(t, err)
	for _, at := range []string{dir + "/p", dir + "/elsewhere"} {
		w.wantDo(p, "move:"+at+"/etc", "error EBUSY", "move:"+at+"/etc/config", "error EBUSY", "rm:"+at+"/etc/config", "error EBUSY", "append:"+at+"/etc/config", "error EROFS",
			"move:"+at+"/var", "error EBUSY", "move:"+at+"/var/lib", "error EBUSY", "move:"+at+"/var/lib/state", "error EBUSY",
			"move:"+at+"/etc/conf.d", "error EBUSY", "make:"+at+"/etc/conf.d/z", "error EROFS", "rm:"+at+"/etc/conf.d/a", "error EROFS", "make:"+at+"/etc/conf.d/sub/z", "error EROFS",
			"read:"+at+"/etc/conf.d/a", "etc/conf.d/a", "read:"+at+"/etc/conf.d/sub/b", "etc/conf.d/sub/b", "read:"+at+"/etc/conf.d/key", "")
	}
	// The rest is the call's, also what is mounted beside it.
	w.wantDo(p, "append:"+dir+"/p/etc/other", "ok", "move:"+dir+"/p/etc/other", "ok", "make:"+dir+"/p/etc/mounted/new", "ok", "make:"+dir+"/p/var/lib/new", "ok", "move:"+dir+"/p/src/new", "ok")
	p, err = w.guarded(&Guard{}, Policy{Write: []string{dir + "/p/src"}}, own)
	must(t, err)
	w.wantDo(p, "make:"+dir+"/p/src/beside", "ok")
}

func TestGrantsThatCouldReplaceOwnFiles(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, errors.Join(os.MkdirAll(dir+"/p/conf.d", 0o700), os.MkdirAll(dir+"/p/sub", 0o700), os.Mkdir(dir+"/far", 0o700)))
	mustWrite(t, dir+"/far/config", "far")
	must(t, errors.Join(os.Symlink("../far/config", dir+"/p/link"), os.Symlink(dir+"/far/config", dir+"/p/conf.d/a"), os.Symlink("far", dir+"/folder")))
	for _, c := range []struct {
		own  Own
		want string // in the error of a grant of p; empty for none
	}{
		{Own{Fixed: []string{dir + "/p/missing"}}, "could make " + dir + "/p/missing"},
		{Own{Fixed: []string{dir + "/p/sub/a/b"}}, "could make " + dir + "/p/sub/a/b"},
		{Own{Fixed: []string{dir + "/p/x", dir + "/p/it's/y", dir + "/missing"}}, "could make " + dir + "/p/x, " + dir + "/p/it's/y there"},
		{Own{Fixed: []string{dir + "/p/x", dir + "/p/it's/y", dir + "/p/x"}}, "make them first (folders: mkdir -p -m 700 " + dir + "/p/x '" + dir + `/p/it'\''s/y')`},
		{Own{Made: []string{dir + "/p/sub2/made"}}, ""},
		{Own{Made: []string{dir + "/p/link/made"}}, dir + "/p/link in it is a link"},
		{Own{Fixed: []string{dir + "/missing"}}, ""},
		{Own{Hidden: []string{dir + "/p/missing"}}, ""},
		{Own{Hidden: []string{dir + "/p/missing"}, Fixed: []string{dir + "/p/missing"}}, "could make " + dir + "/p/missing there, and toolhost would take it for its own; start toolhost without this grant once"},
		{Own{Fixed: []string{dir + "/p/link"}}, dir + "/p/link in it is a link"},
		{Own{Hidden: []string{dir + "/p/link"}}, dir + "/p/link in it is a link"},
		{Own{Fixed: []string{dir + "/folder/config"}}, ""},
		{Own{Fixed: []string{dir + "/p/conf.d/a"}}, dir + "/p/conf.d/a in it is a link"},
		{Own{Fixed: []string{dir + "/p/conf.d/a", dir + "/p/conf.d"}}, ""}, // nobody can exchange it
		{Own{Fixed: []string{dir + "/p"}}, "it is " + dir + "/p"},
	} {
		_, err := w.guarded(&Guard{}, Policy{Write: []string{dir + "/p"}}, c.own)
		if c.want != "" {
			wantError(t, err, "cannot grant", dir+"/p", c.want)
		} else {
			must(t, err)
		}
		_, err = w.guarded(&Guard{}, Policy{Read: []string{dir + "/p"}}, Own{Fixed: c.own.Fixed})
		must(t, err)
	}
}

// A call is planned anew when what is fixed, or a folder above it, is another.
func TestPinsAreJudgedAnew(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, os.MkdirAll(dir+"/p/etc", 0o700))
	mustWrite(t, dir+"/p/etc/config", "config")
	var g Guard
	defer g.Close()
	own, policy := Own{Fixed: []string{dir + "/p/etc/config"}}, Policy{Write: []string{dir}}
	if os.Geteuid() != 0 {
		policy.Allow = append(policy.Allow, SharedUID)
	}
	for range 2 {
		r, err := g.Resolve(policy)
		must(t, err)
		must(t, g.Apply(&r, own))
		p, err := r.Plan(w.f, Task{Programs: []Program{self(t)}})
		must(t, err)
		w.wantDo(p, "move:"+dir+"/p/etc", "error EBUSY", "append:"+dir+"/p/etc/config", "error EROFS", "move:"+dir+"/p", "error EBUSY")
		p.Close()
		must(t, errors.Join(os.Rename(dir+"/p/etc", dir+"/old"), os.Mkdir(dir+"/p/etc", 0o700), os.Rename(dir+"/old/config", dir+"/p/etc/config"), os.Remove(dir+"/old")))
	}
}

// Folders of the host's own are made where a call could make them, and only there.
func TestMissingFoldersAreMadeBeforeACall(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, errors.Join(os.Mkdir(dir+"/p", 0o700), os.Mkdir(dir+"/q", 0o700)))
	own := Own{Hidden: []string{dir + "/p/a/state"}, Made: []string{dir + "/p/a/state", dir + "/p/b/config", dir + "/q/state"}}
	exists := func(path string) bool { _, err := os.Stat(dir + path); return err == nil }
	var g Guard
	defer g.Close()
	judged, err := Policy{Write: []string{dir + "/p"}}.Resolve()
	must(t, err)
	defer judged.Close()
	must(t, g.Judge(&judged, own))
	_, err = w.guarded(&g, Policy{Read: []string{dir + "/p"}}, own)
	must(t, err)
	if exists("/p/a") || exists("/p/b") || exists("/q/state") {
		t.Fatal("folders were made before a call could")
	}
	p, err := w.guarded(&g, Policy{Write: []string{dir + "/p"}}, own)
	must(t, err)
	if !exists("/p/a/state") || !exists("/p/b/config") || exists("/q/state") {
		t.Error("other folders were made than those that the call could make")
	}
	w.wantDo(p, "move:"+dir+"/p/a", "error EBUSY", "move:"+dir+"/p/b/config", "error EBUSY", "make:"+dir+"/p/b/config/z", "error EROFS", "make:"+dir+"/p/new", "ok")
}

func TestMarksAreKeptOnce(t *testing.T) {
	a, b := mark{path: "/a", absent: true}, mark{path: "/a", plain: true}
	if got := distinct([]mark{a, b, a, b}); len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("%v", got)
	}
}
