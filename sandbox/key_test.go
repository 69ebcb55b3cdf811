package sandbox

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unsafe"
)

// Whatever is different about a policy, its key is.
func TestKeyHasEveryField(t *testing.T) {
	fresh := func() Resolved {
		return Resolved{
			policy: Policy{Read: []string{"/r"}, Write: []string{"/w"}, Require: []string{"q"}, Allow: []string{"a"}},
			grants: []grant{{source: "/s", target: "/t"}}, workspace: "/x",
		}
	}
	same, again := fresh(), fresh()
	if same.Key() != again.Key() {
		t.Fatalf("%s\nis not\n%s", same.Key(), again.Key())
	}
	base := fresh()
	for i, n := 0, len(leaves(reflect.ValueOf(&base).Elem(), "")); i < n; i++ {
		changed := fresh()
		leaf := leaves(reflect.ValueOf(&changed).Elem(), "")[i]
		if leaf.name == ".epoch" { // mounts that matter are named: see Spec.Key for those that may
			continue
		}
		mutate(t, leaf.value)
		if changed.Key() == base.Key() {
			t.Errorf("%s is not in the key", leaf.name)
		}
	}
	longer := fresh()
	longer.grants = append(longer.grants, grant{})
	if longer.Key() == base.Key() {
		t.Error("the number of grants is not in the key")
	}
}

type leaf struct {
	name  string
	value reflect.Value
}

// leaves are the values that a struct consists of; unexported ones can be set.
func leaves(v reflect.Value, name string) (list []leaf) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			list = append(list, leaves(v.Field(i), name+"."+v.Type().Field(i).Name)...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, leaves(v.Index(i), name+"[]")...)
		}
	default:
		list = append(list, leaf{name, v})
	}
	return list
}

func mutate(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint16:
		v.SetUint(v.Uint() + 1)
	case reflect.Pointer:
		v.Set(reflect.ValueOf(&held{files: map[string]*opened{"/s": {id: fileID{inode: 1}}}}))
	default:
		t.Fatalf("a %s: say here how it changes", v.Kind())
	}
}

// With the machine's network a process has the files that say where names lead as they are,
// where it has mounts of its own.
func TestKeyHasTheNetworksFiles(t *testing.T) {
	was := networkFiles
	t.Cleanup(func() { networkFiles = was })
	file := filepath.Join(realTemp(t), "hosts")
	networkFiles = []string{file}
	for want, policy := range map[bool]Policy{true: {Network: NetworkHost}, false: {Tier: TierNone}} {
		key := func() string {
			must(t, os.WriteFile(file+".new", nil, 0o600))
			must(t, os.Rename(file+".new", file)) // while the one before still has its inode
			r, err := policy.Resolve()
			must(t, err)
			return r.Key()
		}
		before := key()
		if got := key() != before; got != want {
			t.Errorf("%+v: another key is %v, want %v", policy, got, want)
		}
	}
}

// A path that leads to another folder than before is another grant.
func TestKeyTellsFoldersApart(t *testing.T) {
	dir := realTemp(t)
	for _, name := range []string{"one", "two"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	link := filepath.Join(dir, "link")
	key := func() string {
		t.Helper()
		r, err := Policy{Read: []string{link}}.Resolve()
		must(t, err)
		return r.Key()
	}
	must(t, os.Symlink("one", link))
	first := key()
	if again := key(); again != first {
		t.Errorf("%s\nis not\n%s", again, first)
	}
	must(t, os.Remove(link))
	must(t, os.Symlink("two", link))
	second := key()
	must(t, os.Remove(filepath.Join(dir, "two")))
	must(t, os.Mkdir(filepath.Join(dir, "two"), 0o700))
	if third := key(); first == second || second == third {
		t.Errorf("not three keys: %q, %q, %q", first, second, third)
	}
}
