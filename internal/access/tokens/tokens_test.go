package tokens

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/access"
)

func create(t *testing.T, s *Store, name string, life time.Duration) string {
	t.Helper()
	secret, _, err := s.Create(Spec{Name: name, Roles: []access.Role{access.Call}, Life: life, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func valid(t *testing.T, s *Store, secret string) bool {
	t.Helper()
	_, ok, err := s.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	s, other := Open(dir), Open(dir)
	now := time.Now()
	s.now = func() time.Time { return now }
	secret, brief := create(t, s, "ci", 0), create(t, s, "brief", time.Hour)
	if _, _, err := s.Create(Spec{Name: "ci"}); err == nil || !strings.Contains(err.Error(), "there is a token ci already") {
		t.Errorf("a name twice: %v", err)
	}
	for _, bad := range []string{"", " ", "a b", "-a", "a/b", strings.Repeat("x", 65)} {
		if _, _, err := s.Create(Spec{Name: bad}); err == nil {
			t.Errorf("the name %q is taken", bad)
		}
	}
	if !valid(t, s, secret) || !valid(t, other, secret) || !valid(t, s, brief) {
		t.Error("a token is not valid")
	}
	for _, bad := range []string{"", secret[1:], secret + "0", strings.ToUpper(secret), secret[:len(secret)-1] + "x", Prefix} {
		if valid(t, s, bad) {
			t.Errorf("%q is taken", bad)
		}
	}
	if now = now.Add(time.Hour); valid(t, s, brief) || !valid(t, s, secret) {
		t.Error("the expiry does not count")
	}
	if list, err := s.List(); err != nil || len(list) != 2 || list[1].State(now) != "expired" {
		t.Errorf("%+v %v", list, err)
	}
}

// Revoking is at once for everybody who has the store open, and ends the sessions of
// the token.
func TestRevokedAtOnce(t *testing.T) {
	dir := t.TempDir()
	s, daemon := Open(dir), Open(dir)
	secret := create(t, s, "ci", 0)
	found, _, _ := daemon.Find(secret)
	session, _, err := daemon.Login(Holder{Token: found.ID}, time.Hour, "ci")
	if err != nil || !valid(t, daemon, session) {
		t.Fatalf("no session: %v", err)
	}
	of, _, _ := daemon.Find(session)
	if !daemon.Holds(of.ID) || !daemon.Holds(found.ID) {
		t.Error("they do not hold")
	}
	if _, err := s.Revoke("ci", "test"); err != nil {
		t.Fatal(err)
	}
	if valid(t, daemon, secret) || valid(t, daemon, session) || daemon.Holds(of.ID) || daemon.Holds(found.ID) {
		t.Error("something goes on")
	}
	if _, err := s.Revoke("ci", "test"); !errors.Is(err, ErrUnknown) {
		t.Errorf("again: %v", err)
	}
	create(t, s, "ci", 0) // the name is free again
	uid := uint32(7)
	own, _, _ := daemon.Login(Holder{UID: &uid}, time.Hour, "uid 7")
	of, _, _ = daemon.Find(own)
	if err := daemon.Logout(of.ID); err != nil || valid(t, Open(dir), own) {
		t.Errorf("after the logout: %v", err)
	}
}

// The file has hashes alone, and is refused where others could have had it.
func TestTheFileOpensNothing(t *testing.T) {
	s := Open(t.TempDir())
	secret := create(t, s, "ci", 0)
	raw, err := os.ReadFile(s.Path())
	info, _ := os.Stat(s.Path())
	if err != nil || info.Mode() != 0o600 || strings.Contains(string(raw), secret) || strings.Contains(string(raw), secret[20:46]) {
		t.Errorf("mode %v: %s", info.Mode(), raw)
	}
	if err := os.Chmod(s.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(s.Dir()).Find(secret); err == nil || !strings.Contains(err.Error(), "others may have read it") {
		t.Errorf("a file that others can read: %v", err)
	}
	for text, want := range map[string]string{"{": "is damaged", `{"version":9}`: "use the newer toolhost"} {
		_ = os.Remove(s.Path())
		if err := os.WriteFile(s.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(s.Dir()).Find(secret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Nobody ends others' sessions by beginning many.
func TestManySessionsOfOne(t *testing.T) {
	s := Open(t.TempDir())
	login := func(by string) string {
		secret, _, err := s.Login(Holder{FileHash: "x"}, time.Hour, by)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	other, first := login("token other"), login("token one")
	for range maxOwnSessions - 1 {
		login("token one")
	}
	for secret, valid := range map[string]bool{other: true, first: true} {
		if _, ok, err := s.Find(secret); ok != valid || err != nil {
			t.Errorf("before there are too many: %t, %v", ok, err)
		}
	}
	login("token one")
	for secret, valid := range map[string]bool{other: true, first: false} {
		if _, ok, err := s.Find(secret); ok != valid || err != nil {
			t.Errorf("valid %t, want %t, %v", ok, valid, err)
		}
	}
}

// Programs that change it at once lose nothing of each other's.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := Open(dir)
			for range 5 {
				if _, _, err := s.Login(Holder{FileHash: "x"}, time.Hour, "x"+string(rune('a'+i))); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := s.Create(Spec{Name: "t" + string(rune('a'+i)), By: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := Open(dir).read()
	if err != nil || len(f.Tokens) != 48 {
		t.Errorf("%d tokens, %v", len(f.Tokens), err)
	}
}

// Of two tokens of a name, one of which has expired, the valid one is revoked; an expired one
// is where it is named by its id, or alone has the name.
func TestRevokeAfterARotation(t *testing.T) {
	s := Open(t.TempDir())
	now := time.Now()
	s.now = func() time.Time { return now }
	create(t, s, "ci", time.Hour)
	now = now.Add(2 * time.Hour)
	leaked := create(t, s, "ci", time.Hour)
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if gone, err := s.Revoke("ci", "me"); err != nil || gone.ID != list[1].ID || valid(t, s, leaked) {
		t.Errorf("%+v, %v; it is valid: %t", gone, err, valid(t, s, leaked))
	}
	if gone, err := s.Revoke(list[0].ID, "me"); err != nil || gone.ID != list[0].ID {
		t.Errorf("%+v, %v", gone, err)
	}
}
