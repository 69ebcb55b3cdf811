package sandbox

import (
	"errors"
	"os"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// guarded is a plan of p in which dir's "state" is hidden, and "config" fixed.
func (w *world) guarded(g *Guard, p Policy, own Own) (*Plan, error) {
	w.t.Helper()
	if os.Geteuid() != 0 {
		p.Allow = append(p.Allow, SharedUID)
	}
	r := resolve(w.t, p)
	if err := g.Apply(&r, own); err != nil {
		r.Close()
		return nil, err
	}
	return r.Plan(w.f, Task{Programs: []Program{self(w.t)}})
}

func ownFiles(t *testing.T) (dir string, own Own) {
	t.Helper()
	dir = realTemp(t)
	must(t, os.MkdirAll(dir+"/sub/state/data/tool", 0o700))
	mustWrite(t, dir+"/sub/state/token", "token")
	mustWrite(t, dir+"/sub/socket", "socket")
	mustWrite(t, dir+"/config", "config")
	mustWrite(t, dir+"/file", "file")
	return dir, Own{
		Hidden: []string{dir + "/sub/state", dir + "/sub/socket", dir + "/nothing", dir + "/sub/state/token", dir + "/sub/state"},
		Fixed:  []string{dir + "/config", dir + "/config", dir + "/sub/state/token"}, Data: dir + "/sub/state/data",
	}
}

func TestOwnFilesBelowAGrant(t *testing.T) {
	w := enter(t)
	dir, own := ownFiles(t)
	must(t, os.Symlink("sub", dir+"/link"))
	for _, write := range []bool{false, true} {
		for _, granted := range []string{dir, dir + "/sub", dir + "/link"} {
			policy := Policy{Read: []string{granted}}
			if write {
				policy = Policy{Write: []string{granted}}
			}
			p, err := w.guarded(&Guard{}, policy, own)
			must(t, err)
			sub := granted
			if granted == dir {
				sub = dir + "/sub"
				w.wantDo(p, "read:"+dir+"/file", "file", "read:"+dir+"/config", "config", "append:"+dir+"/config", "error EROFS", "rm:"+dir+"/sub/state", "error "+map[bool]string{true: "EBUSY", false: "EROFS"}[write])
			}
			w.wantDo(p, "list:"+sub+"/state", "", "read:"+sub+"/state/token", "error ENOENT", "append:"+sub+"/state/token", "error ENOENT",
				"make:"+sub+"/state/x", "error EROFS", "read:"+sub+"/socket", "", "append:"+sub+"/socket", "error EACCES")
		}
	}
	if text, err := os.ReadFile(dir + "/sub/state/token"); err != nil || string(text) != "token" {
		t.Errorf("the token is %q, %v", text, err)
	}
}

func TestGrantsOfOwnFiles(t *testing.T) {
	w := enter(t)
	dir, own := ownFiles(t)
	must(t, errors.Join(os.Symlink(dir+"/sub/state", dir+"/link"), os.Link(dir+"/sub/socket", dir+"/hard")))
	for _, path := range []string{"/sub/state", "/sub/state/", "/sub/state/token", "/sub/state/data/tool", "/link", "/link/token", "/sub/socket", "/hard"} {
		for _, policy := range []Policy{{Read: []string{dir + path}}, {Write: []string{dir + path}}} {
			_, err := w.guarded(&Guard{}, policy, own)
			if _, ok := errors.AsType[*OwnError](err); !ok {
				t.Errorf("%s: %v", path, err)
			}
			wantError(t, err, "cannot grant "+dir, "toolhost's own", dir+"/sub/")
		}
	}
	_, err := w.guarded(&Guard{}, Policy{Write: []string{dir + "/config"}}, own)
	wantError(t, err, dir+"/config", "toolhost's own")
	_, err = w.guarded(&Guard{}, Policy{Workspace: dir + "/sub/state"}, own)
	wantError(t, err, dir+"/sub/state", "toolhost's own")
	for _, policy := range []Policy{{Read: []string{dir + "/config"}}, {Workspace: dir + "/sub/state/data/tool"}, {}} {
		if _, err := w.guarded(&Guard{}, policy, own); err != nil {
			t.Errorf("%+v: %v", policy, err)
		}
	}
}

// The folder that is the workspace is no other than a grant.
func TestOwnFilesBelowTheWorkspace(t *testing.T) {
	w := enter(t)
	dir, own := ownFiles(t)
	must(t, os.Chmod(dir, 0o700))
	p, err := w.guarded(&Guard{}, Policy{Workspace: dir}, own)
	must(t, err)
	w.wantDo(p, "read:/workspace/file", "file", "list:/workspace/sub/state", "", "read:/workspace/sub/state/token", "error ENOENT",
		"read:/workspace/config", "config", "append:/workspace/config", "error EROFS", "rm:/workspace/sub", "error EBUSY", "make:/workspace/new", "ok")
	_, err = w.guarded(&Guard{}, Policy{Workspace: dir}, Own{Fixed: []string{dir + "/missing"}})
	wantError(t, err, "cannot grant writing to "+dir, dir+"/missing")
}

func TestOwnFilesBehindAMount(t *testing.T) {
	w := enter(t)
	dir, own := ownFiles(t)
	elsewhere := realTemp(t)
	bind(t, dir+"/sub/state", elsewhere+"/whole")
	bind(t, dir+"/sub", elsewhere+"/above/it")
	bind(t, dir+"/sub/state/data", elsewhere+"/part")
	p, err := w.guarded(&Guard{}, Policy{Write: []string{elsewhere}}, own)
	if err == nil {
		w.wantDo(p, "list:"+elsewhere+"/whole", "", "list:"+elsewhere+"/above/it/state", "", "list:"+elsewhere+"/part", "")
	} else {
		t.Error(err)
	}
	for _, path := range []string{"/whole", "/whole/token", "/above/it/state", "/part", "/part/tool"} {
		_, err := w.guarded(&Guard{}, Policy{Read: []string{elsewhere + path}}, own)
		wantError(t, err, "toolhost's own")
	}
}

// A call that may write around what is own can move it, and gains nothing.
func TestOwnFilesThatAreMoved(t *testing.T) {
	w := enter(t)
	dir, own := ownFiles(t)
	own.Fixed = nil // what is, must not be missing
	var g Guard
	defer g.Close()
	p, err := w.guarded(&g, Policy{Write: []string{dir}}, own)
	must(t, err)
	must(t, os.Rename(dir+"/sub", dir+"/moved"))
	c := w.start(p, "do", []string{"read:" + dir + "/moved/state/token"}, nil)
	if c.err == nil {
		c.err = c.Started(wait.Context(t))
	}
	wantError(t, c.err, "cannot protect "+dir+"/sub")
	p, err = w.guarded(&g, Policy{Write: []string{dir}}, own)
	must(t, err)
	w.wantDo(p, "list:"+dir+"/moved/state", "", "read:"+dir+"/moved/state/token", "error ENOENT")
}
