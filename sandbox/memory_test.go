package sandbox

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/network"
)

// again resolves p by g, and says whether that was from memory.
func again(t *testing.T, g *Guard, p Policy, own Own) (r Resolved, remembered bool) {
	t.Helper()
	r, err := g.Resolve(p)
	must(t, err)
	t.Cleanup(r.Close)
	remembered = r.held.shut
	if _, ok := g.masksOf(&r, own); !ok {
		remembered = false
	}
	must(t, g.Apply(&r, own))
	return r, remembered
}

// fromMemory resolves p from memory, for which it may have to be judged once more:
// others mount something on this machine, too.
func fromMemory(t *testing.T, g *Guard, p Policy, own Own) Resolved {
	t.Helper()
	for range 100 {
		if r, remembered := again(t, g, p, own); remembered {
			return r
		}
	}
	t.Fatal("it is not remembered")
	return Resolved{}
}

// What is remembered of a policy holds until something changes by which it was judged.
func TestAPolicyIsJudgedAgainAfterAChange(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"the granted folder is another one": func(t *testing.T, dir string) {
			must(t, errors.Join(os.Rename(dir+"/granted", dir+"/old"), os.Mkdir(dir+"/granted", 0o700)))
		},
		"the granted folder is gone and there again": func(t *testing.T, dir string) {
			must(t, errors.Join(os.RemoveAll(dir+"/granted"), os.Mkdir(dir+"/granted", 0o700)))
		},
		"a link leads to it": func(t *testing.T, dir string) {
			must(t, errors.Join(os.Rename(dir+"/granted", dir+"/old"), os.Symlink("old", dir+"/granted")))
		},
		"its mode is another one": func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/granted", 0o755)) },
		"something own is another one": func(t *testing.T, dir string) {
			must(t, errors.Join(os.Rename(dir+"/granted/own", dir+"/granted/old"), os.WriteFile(dir+"/granted/own", nil, 0o600)))
		},
		"something own is there now": func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/later", nil, 0o600)) },
		"something own has been moved": func(t *testing.T, dir string) {
			must(t, errors.Join(os.Rename(dir+"/state", dir+"/granted/state"), os.Symlink("granted/state", dir+"/state")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := realTemp(t)
			must(t, errors.Join(os.Mkdir(dir+"/granted", 0o700), os.Mkdir(dir+"/state", 0o700), os.WriteFile(dir+"/granted/own", nil, 0o600)))
			own := Own{Hidden: []string{dir + "/granted/own", dir + "/later", dir + "/state"}}
			policy := Policy{Write: []string{dir + "/granted"}}
			g := &Guard{}
			t.Cleanup(g.Close)
			first, remembered := again(t, g, policy, own)
			if remembered {
				t.Fatal("from memory at first")
			}
			second := fromMemory(t, g, policy, own)
			if first.Key() != second.Key() || !reflect.DeepEqual(first.masks, second.masks) || !reflect.DeepEqual(first.grants, second.grants) {
				t.Errorf("%+v\nis not\n%+v", second, first)
			}
			change(t, dir)
			third, remembered := again(t, g, policy, own)
			if remembered {
				t.Error("it was not judged again")
			}
			fresh, err := policy.Resolve()
			must(t, err)
			t.Cleanup(fresh.Close)
			must(t, g.Apply(&fresh, own))
			if third.Key() != fresh.Key() || !reflect.DeepEqual(third.masks, fresh.masks) {
				t.Errorf("%+v\nis not\n%+v", third, fresh)
			}
		})
	}
}

// A mount anywhere has all judged again: it can show in a grant what must not be.
func TestAPolicyIsJudgedAgainAfterAMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("missing: root, who may mount")
	}
	dir := realTemp(t)
	must(t, errors.Join(os.MkdirAll(dir+"/granted/at", 0o700), os.Mkdir(dir+"/state", 0o700)))
	own := Own{Hidden: []string{dir + "/state"}}
	policy := Policy{Read: []string{dir + "/granted"}}
	g := &Guard{}
	t.Cleanup(g.Close)
	fromMemory(t, g, policy, own)
	bind(t, dir+"/state", dir+"/granted/at")
	r, remembered := again(t, g, policy, own)
	if remembered || len(r.masks) != 1 || r.masks[0].target != dir+"/granted/at" {
		t.Errorf("from memory: %t, masks %+v", remembered, r.masks)
	}
}

// Whatever is different about a policy, or about what is own, is not what is remembered.
func TestMemoryTellsPoliciesApart(t *testing.T) {
	policy := func() Policy {
		return Policy{Read: []string{"/r"}, Write: []string{"/w"}, Require: []string{"q"}, Allow: []string{"a"}, Grants: []network.Grant{{Host: "h", Ports: []uint16{1}}}}
	}
	given := policy()
	for i, n := 0, len(leaves(reflect.ValueOf(&given).Elem(), "")); i < n; i++ {
		changed, kept := policy(), policy().clone()
		leaf := leaves(reflect.ValueOf(&changed).Elem(), "")[i]
		mutate(t, leaf.value)
		if !given.equal(kept) || given.equal(changed) {
			t.Errorf("%s makes no difference", leaf.name)
		}
		mutate(t, leaves(reflect.ValueOf(&given).Elem(), "")[i].value) // what is remembered is a copy
		if !policy().equal(kept) {
			t.Errorf("%s is shared with the caller", leaf.name)
		}
		given = policy()
	}
	own := func() Own { return Own{Hidden: []string{"/h"}, Fixed: []string{"/f"}} }
	first := own()
	for i, n := 0, len(leaves(reflect.ValueOf(&first).Elem(), "")); i < n; i++ {
		changed := own()
		leaf := leaves(reflect.ValueOf(&changed).Elem(), "")[i]
		mutate(t, leaf.value)
		if !own().equal(own()) || own().equal(changed) {
			t.Errorf("own%s makes no difference", leaf.name)
		}
	}
}

// A start from memory shows what was judged, or fails: never what has come since.
func TestAStartFromMemory(t *testing.T) {
	w := enter(t)
	dir := realTemp(t)
	must(t, os.Mkdir(dir+"/granted", 0o755))
	mustWrite(t, dir+"/granted/file", "judged")
	policy := Policy{Read: []string{dir + "/granted"}}
	if os.Geteuid() != 0 {
		policy.Allow = append(policy.Allow, SharedUID)
	}
	g := &Guard{}
	t.Cleanup(g.Close)
	remembered := func() *Plan {
		t.Helper()
		p, err := fromMemory(t, g, policy, Own{}).Plan(w.f, Task{Programs: []Program{self(t)}})
		must(t, err)
		return p
	}
	w.wantDo(remembered(), "read:"+dir+"/granted/file", "judged")
	p := remembered()
	must(t, errors.Join(os.Rename(dir+"/granted", dir+"/old"), os.Mkdir(dir+"/granted", 0o755)))
	c := w.start(p, "do", nil, nil)
	wantError(t, c.err, dir+"/granted", "replaced")
}

// What is remembered is bounded, and the newest stay.
func TestMemoryIsBounded(t *testing.T) {
	dir := realTemp(t)
	g := &Guard{}
	t.Cleanup(g.Close)
	policies := make([]Policy, maxJudged+2)
	for i := range policies {
		policies[i] = Policy{Read: []string{dir}, Allow: slices.Repeat([]string{SharedUID}, i)}
		again(t, g, policies[i], Own{})
	}
	if len(g.judged) != maxJudged {
		t.Errorf("%d are remembered", len(g.judged))
	}
	fromMemory(t, g, policies[maxJudged+1], Own{})
}
