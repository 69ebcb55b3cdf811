package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

func TestRangeOfRoot(t *testing.T) {
	for _, c := range []struct {
		name, uidMap string
		first, count int
	}{
		{"all", "         0          0 4294967295\n", rootBase, maxSlots},
		{"just enough", fmt.Sprintf("0 0 %d\n", rootBase+maxSlots), rootBase, maxSlots},
		{"one too few", fmt.Sprintf("0 0 %d\n", rootBase+maxSlots-1), rootBase + maxSlots - 1 - 1024 - maxSlots, maxSlots},
		{"a container", "0 100000 65536\n", 65536 - 1024 - maxSlots, maxSlots},
		{"rootless", "0 1000 1\n1 100000 65536\n", 1 + 65536 - 1024 - maxSlots, maxSlots},
		{"small", "0 100000 5000\n", 1000, 5000 - 1000 - 1024},
		{"smallest", "0 100000 2040\n", 1000, 16},
	} {
		got, err := rootRange(c.uidMap)
		if want := (idRange{c.first, c.first, c.first, c.count}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, want)
		}
		if nobody := 65534; got.outsideUID <= nobody && nobody < got.outsideUID+got.count {
			t.Errorf("%s: %+v has nobody in it", c.name, got)
		}
	}
	for uidMap, part := range map[string]string{
		"":                "has 0 ids: map at least 2040",
		"0 100000 2039\n": "has 2039 ids: map at least 2040",
		"0 1000 1\n":      "has 1 ids",
		"garbage\n":       `"garbage\n"`,
		"0 0\n":           "uid_map",
		"0 0 x\n":         "uid_map",
	} {
		_, err := rootRange(uidMap)
		wantError(t, err, part)
	}
}

func testSlots(t testing.TB, dir string, count int) *slots {
	t.Helper()
	s := &slots{dir: dir, ids: idRange{outsideUID: 5000, outsideGID: 5000, inside: 5000, count: count}}
	t.Cleanup(s.close)
	return s
}

// Nobody ever gets a user that somebody else has, over several hosts with one
// folder.
func TestSlotsAreNeverShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "take")
	hosts := []*slots{testSlots(t, dir, 512), testSlots(t, dir, 512)}
	var mu sync.Mutex
	taken := map[int]bool{}
	var all sync.WaitGroup
	for i := range 200 {
		s := hosts[i%len(hosts)]
		all.Go(func() {
			for range 5 {
				got, err := s.take()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if taken[got.number] {
					t.Errorf("slot %d is taken twice", got.number)
				}
				taken[got.number] = true
				mu.Unlock()

				mu.Lock()
				delete(taken, got.number)
				mu.Unlock()
				s.give(got)
			}
		})
	}
	all.Wait()
}

func TestSlotsHeldTogether(t *testing.T) {
	dir := t.TempDir()
	a, b := testSlots(t, dir, 200), testSlots(t, dir, 200)
	b.next = 1019 // they begin at different ones
	var mu sync.Mutex
	seen := map[int]slot{}
	var all sync.WaitGroup
	for i := range 200 {
		s := []*slots{a, b}[i%2]
		all.Go(func() {
			got, err := s.take()
			mu.Lock()
			defer mu.Unlock()
			if _, double := seen[got.number]; err != nil || double {
				t.Errorf("slot %d, %v; twice: %v", got.number, err, double)
			}
			seen[got.number] = got
		})
	}
	all.Wait()
	if _, err := a.take(); !errors.Is(err, errNoSlot) {
		t.Errorf("the 201st of 200: %v", err)
	}
	for _, got := range seen {
		_ = got.lock.Close()
	}
}

func TestSlotsAreReused(t *testing.T) {
	dir := t.TempDir()
	s := testSlots(t, dir, 3)
	first, err := s.take()
	must(t, err)
	s.give(first)
	again, err := s.take()
	if err != nil || again != first {
		t.Errorf("took %+v, %v; want %+v", again, err, first)
	}
	if info, err := os.Stat(filepath.Join(dir, strconv.Itoa(5000+first.number))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("lock file: %v, %v", info, err)
	}
	s.give(again)
}

// What another host lets go of is found at once, not only after a failure.
func TestSlotsOfOthersComeBack(t *testing.T) {
	dir := t.TempDir()
	a, b := testSlots(t, dir, 2), testSlots(t, dir, 2)
	first, err := a.take()
	must(t, err)
	second, err := b.take()
	must(t, err)
	if _, err := b.take(); !errors.Is(err, errNoSlot) {
		t.Errorf("third of two: %v", err)
	}
	a.give(first)
	if _, err := b.take(); !errors.Is(err, errNoSlot) { // a keeps what it has had
		t.Errorf("third of two: %v", err)
	}
	a.close()
	got, err := b.take()
	if err != nil || got.number != first.number {
		t.Errorf("took %d, %v; want %d", got.number, err, first.number)
	}
	b.give(got)
	b.give(second)
}

func TestSlotsAfterClose(t *testing.T) {
	dir := t.TempDir()
	a, b := testSlots(t, dir, 1), testSlots(t, dir, 1)
	got, err := a.take()
	must(t, err)
	a.close()
	if _, err := b.take(); !errors.Is(err, errNoSlot) {
		t.Errorf("the call of a closed host lost its user: %v", err)
	}
	a.give(got)
	other, err := b.take()
	must(t, err)
	b.give(other)
}

func TestNoSlotsAtAll(t *testing.T) {
	if _, err := testSlots(t, t.TempDir(), 0).take(); !errors.Is(err, errNoSlot) {
		t.Errorf("take: %v", err)
	}
	wantError(t, errNoSlot, "let calls end, or allow fewer")
}

func TestFolderOfUsersThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, "")
	_, err := testSlots(t, file+"/users", 4).take()
	wantError(t, err, file+"/users")
}

// A link in the folder is not followed, wherever it leads.
func TestLockThatIsALink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink(dir+"/elsewhere", dir+"/5000"))
	_, err := testSlots(t, dir, 4).take()
	wantError(t, err, dir+"/5000")
	if _, err := os.Lstat(dir + "/elsewhere"); err == nil {
		t.Error("the link was followed")
	}
}

// The launcher has the lock too, so the user is taken until both let go.
func TestLockHeldByAChild(t *testing.T) {
	dir := t.TempDir()
	a, b := testSlots(t, dir, 1), testSlots(t, dir, 1)
	got, err := a.take()
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	child := exec.Command(self)
	child.Env = []string{roleVar + "=wait"}
	child.ExtraFiles = []*os.File{got.lock}
	stdin, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	must(t, got.lock.Close())
	if _, err := b.take(); !errors.Is(err, errNoSlot) {
		t.Errorf("taken although the child holds it: %v", err)
	}
	must(t, stdin.Close())
	must(t, child.Wait())
	other, err := b.take()
	must(t, err)
	b.give(other)
}

// A host that had users for calls does not go on without them, but has them again as soon as
// that can be.
func TestUsersThatAreLost(t *testing.T) {
	ranged, none := users{ranged: true}, users{noRange: &errNoRange{"newuidmap failed", "look at it"}}
	for _, c := range []struct {
		was, now users
		lost     bool
	}{{users{}, none, false}, {none, none, false}, {none, ranged, false}, {ranged, ranged, false}, {ranged, none, true}} {
		if err := c.was.lost(c.now); (err != nil) != c.lost || err != nil && !OfTheHost(err) {
			t.Errorf("from %+v to %+v: %v", c.was, c.now, err)
		}
	}
	wantError(t, ranged.lost(none), "newuidmap failed", "look at it")
}

func TestUsersAfterAFailingMap(t *testing.T) {
	w := enter(t)
	if os.Geteuid() == 0 || !w.f.ranged {
		t.Skip("missing: an unprivileged user with subordinate ids")
	}
	p := w.plan(Policy{}, Task{})
	path, bin := os.Getenv("PATH"), realTemp(t)
	must(t, os.WriteFile(bin+"/newuidmap", []byte("#!/bin/sh\nexit 1\n"), 0o755))
	t.Setenv("PATH", bin+":"+path)
	old := w.z
	must(t, syscall.Kill(zygotePID(t), syscall.SIGKILL))
	<-old.gone
	wantError(t, w.start(p, "exit7", nil, nil).err, "newuidmap failed")
	t.Setenv("PATH", path)
	if status := w.run(p, "exit7").status(); status.ExitStatus() != 7 {
		t.Errorf("status %#x", status)
	}
}
