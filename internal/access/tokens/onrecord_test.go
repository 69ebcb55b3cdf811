package tokens

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/access"
)

// chain plays the daemon's: what it has, read anew each time as a next daemon does.
type chain []Change

func (c *chain) missing(s *Store, now time.Time) (actions []string) {
	var o OnRecord
	for _, one := range *c {
		o.Note(one.Action, one.What)
	}
	list, _ := s.List()
	for _, m := range o.Missing(list, now) {
		actions = append(actions, m.Who+" "+strings.TrimPrefix(m.Action, ActionPrefix)+" "+strings.Fields(m.What)[0])
		*c = append(*c, m)
		o.NoteChange(m)
	}
	if again := o.Missing(list, now); len(again) > 0 {
		actions = append(actions, "and all of it again")
	}
	return actions
}

// Whatever happened to the tokens while nobody looked is found, once.
func TestWhatTheChainLacks(t *testing.T) {
	s := Open(t.TempDir())
	now := time.Now()
	s.now = func() time.Time { return now }
	var c chain
	step := func(name string, want ...string) {
		t.Helper()
		if got := c.missing(s, now); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := c.missing(s, now); got != nil {
			t.Errorf("%s, once more: %q", name, got)
		}
	}
	create := func(name string, life time.Duration) {
		t.Helper()
		spec := Spec{Name: name, Roles: []access.Role{access.Call}, Tools: []string{"a_*", strings.Repeat("b", 300)}, Life: life, By: "uid 0"}
		if _, _, err := s.Create(spec); err != nil {
			t.Fatal(err)
		}
	}
	step("nothing")
	create("ci", 0)
	create("brief", time.Hour)
	step("two", "uid 0 create ci", "uid 0 create brief")
	create("gone", 0)
	if _, err := s.Revoke("gone", "uid 7"); err != nil {
		t.Fatal(err)
	}
	step("made and revoked", "uid 0 create gone", "uid 7 revoke gone")
	if _, _, err := s.Login(Holder{FileHash: "x"}, time.Hour, "uid 0"); err != nil {
		t.Fatal(err)
	}
	step("a session")
	edit(t, s, func(f *file) { f.Tokens[0].Roles = []access.Role{access.Admin} })
	step("another role", "somebody unknown change ci")
	edit(t, s, func(f *file) { f.Tokens[0].Hash = HashOf("mine") })
	step("another secret", "somebody unknown change ci")
	edit(t, s, func(f *file) { f.Tokens[0].Tools[1] += "*" })
	step("the end of a long list of tools", "somebody unknown change ci")
	var before file
	edit(t, s, func(f *file) { before, f.Tokens = *f, f.Tokens[1:] })
	step("taken out", "somebody unknown gone ci")
	edit(t, s, func(f *file) { *f = before })
	step("put back", "somebody unknown change ci")
	if _, err := s.Revoke("ci", "uid 7"); err != nil {
		t.Fatal(err)
	}
	step("revoked", "uid 7 revoke ci")
	edit(t, s, func(f *file) { f.Tokens[0].Roles = nil })
	step("another role when it was revoked", "somebody unknown change ci", "uid 7 revoke ci")
	edit(t, s, func(f *file) { *f = before })
	step("valid again", "somebody unknown change ci")
	if _, err := s.Revoke("ci", "daemon"); err != nil {
		t.Fatal(err)
	}
	step("revoked again", "daemon revoke ci")
	now = now.Add(keepRevoked + 2*time.Hour)
	edit(t, s, func(f *file) { f.tidy(now) })
	step("what was over goes")
	for _, odd := range []Change{{Action: actionCreate, What: "x"}, {Action: "session.begin", What: "ci (aaaaaaaaaa)"}, {Action: actionRevoke}} {
		c = append(c, odd)
	}
	step("records about something else")
}

// Tokens are not gone while their folder is somewhere else.
func TestAFolderThatIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := Open(dir)
	if list, err := s.List(); err != nil || list != nil {
		t.Errorf("before there is a folder: %v %v", list, err)
	}
	if _, _, err := s.Create(Spec{Name: "ci", By: "uid 0"}); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if list, err := s.List(); err != nil || len(list) != 1 {
			t.Errorf("%v %v", list, err)
		}
		move(dir, dir+".moved")
		for range 2 {
			if list, err := s.List(); err == nil {
				t.Errorf("without the folder: %v", list)
			}
		}
		move(dir+".moved", dir)
	}
	if err := os.Remove(s.Path()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("without the file: %v %v", list, err)
	}
}

// Records of daemons that wrote less about each token are taken as they are.
func TestRecordsOfOlderDaemons(t *testing.T) {
	s := Open(t.TempDir())
	_, made, err := s.Create(Spec{Name: "ci", By: "uid 0"})
	if err != nil {
		t.Fatal(err)
	}
	c := chain{{Action: actionCreate, What: "ci (" + made.ID + ")"}}
	if got := c.missing(s, time.Now()); got != nil {
		t.Errorf("%q", got)
	}
}

// edit changes the file behind the store's back.
func edit(t *testing.T, s *Store, change func(*file)) {
	t.Helper()
	var f file
	if err := ReadPrivate(s.Path(), maxFileBytes, &f); err != nil {
		t.Fatal(err)
	}
	change(&f)
	raw, _ := json.Marshal(f)
	if err := os.Remove(s.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
