package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVictims(t *testing.T) {
	const block = 4096
	old := func(name string, blocks int64, hours time.Duration) stored {
		return stored{name, blocks * block, hours * time.Hour}
	}
	fresh := stored{"fresh", 4 * block, keepFor - 1}
	s := &Store{maxBytes: 10 * block}
	for _, test := range []struct {
		name    string
		all     []stored
		size    int64
		victims []string
		missing int64
	}{
		{"empty", nil, 10 * block, nil, 0},
		{"too large", nil, 10*block + 1, nil, block},
		{"fits", []stored{old("a", 5, 1)}, 5 * block, nil, -0},
		{"rounded up", []stored{old("a", 5, 1)}, 4*block + 1, nil, 0},
		{"oldest first", []stored{old("a", 5, 1), old("b", 5, 3), old("c", 0, 2)}, 1, []string{"b"}, -4 * block},
		{"as many as needed", []stored{old("a", 5, 1), old("b", 5, 3)}, 6 * block, []string{"b", "a"}, -4 * block},
		{"fresh stays", []stored{fresh, old("a", 6, 1)}, 7 * block, []string{"a"}, block},
	} {
		victims, missing := s.victims(test.all, test.size)
		if !slices.Equal(victims, test.victims) || missing != test.missing {
			t.Errorf("%s: %v, %d missing; want %v, %d", test.name, victims, missing, test.victims, test.missing)
		}
	}
}

// clockAt sets a store's clock relative to the real one.
func clockAt(s *testStore, after time.Duration) {
	s.now = func() time.Time { return time.Now().Add(ahead + after) }
}

func TestEviction(t *testing.T) {
	const size = 64 << 10
	contents := []string{strings.Repeat("a", size), strings.Repeat("b", size), strings.Repeat("c", size)}
	var paths []string
	for _, content := range contents {
		paths = append(paths, writeTool(t, content))
	}
	s := open(t, t.TempDir(), 2*size)
	s.add(t, paths[0], contents[0])
	s.add(t, paths[1], contents[1])

	_, err := s.Add(paths[2])
	wantError(t, err, "was used in the last 2m0s; raise the bound by 65536, or wait")
	wantClean(t, s.Store, contents[:2]...)

	// A use just before the first one's time is over keeps it.
	clockAt(s, keepFor-time.Second)
	s.add(t, paths[0], contents[0])
	clockAt(s, keepFor+time.Minute)
	s.copies.Store(0)
	s.add(t, paths[2], contents[2])
	s.wantCopies(t, 1)
	wantClean(t, s.Store, contents[0], contents[2])
	if names := s.identityNames(); len(names) != 2 {
		t.Errorf("identities %v, want those of two copies", names)
	}

	// What was removed is copied again once it is wanted.
	clockAt(s, 3*keepFor)
	s.add(t, paths[1], contents[1])
	s.wantCopies(t, 1)
}

// A copy from a time when the clock was wrong must not stay for ever.
func TestFutureUseIsEvicted(t *testing.T) {
	s := open(t, t.TempDir(), 4096)
	entry := s.add(t, writeTool(t, "a"), "a")
	future := time.Now().Add(1000 * time.Hour)
	if err := os.Chtimes(entry.Path, future, future); err != nil {
		t.Fatal(err)
	}
	s.add(t, writeTool(t, "b"), "b")
	wantClean(t, s.Store, "b")
}

func TestUseIsWrittenDownRarely(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	path := writeTool(t, "a")
	entry := s.add(t, path, "a")
	for _, test := range []struct {
		after   time.Duration
		written bool
	}{
		{touchAfter - 30*time.Second, false},
		{touchAfter + 30*time.Second, true},
		{touchAfter + 40*time.Second, false},
	} {
		before := lastUse(t, entry)
		clockAt(s, test.after)
		s.add(t, path, "a")
		if written := lastUse(t, entry) != before; written != test.written {
			t.Errorf("after %v: written %v", test.after, written)
		}
	}
	s.wantCopies(t, 1)
}

func lastUse(t *testing.T, entry Entry) time.Time {
	t.Helper()
	at, ok := check(entry, 1)
	if !ok {
		t.Fatal("the copy is corrupt")
	}
	return at
}

func TestIdentitiesAreBounded(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	path := writeTool(t, "kept")
	s.add(t, path, "kept")
	fill := func(target string) {
		for i := range maxIdentities {
			_ = os.Symlink("../"+target, filepath.Join(s.dir, identities, fmt.Sprintf("%d-%s", i, target)))
		}
	}
	fill(hashOf("gone"))
	s.add(t, writeTool(t, "two"), "two")
	if n := len(s.identityNames()); n != 2 {
		t.Errorf("%d identities, want the 2 whose copies exist", n)
	}
	fill(hashOf("kept"))
	s.add(t, writeTool(t, "three"), "three")
	if n := len(s.identityNames()); n != 1 {
		t.Errorf("%d identities, want the new one only", n)
	}
}

// What an identity's link says is not believed.
func TestWrongIdentityIsIgnored(t *testing.T) {
	for _, target := range []string{"../" + hashOf("other"), "../id", "/etc/passwd", "../../x", "../" + strings.Repeat("z", 64)} {
		dir, path := t.TempDir(), writeTool(t, "tool")
		s := open(t, dir, 0)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, s.identityPath(identify(info))); err != nil {
			t.Fatal(err)
		}
		s.add(t, path, "tool")
		second := open(t, dir, 0)
		second.add(t, path, "tool")
		second.wantCopies(t, 0)
	}
}
