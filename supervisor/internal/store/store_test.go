package store

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "new", "store"), 0)
	large := strings.Repeat("large", chunkBytes) // a whole number of chunks
	for _, content := range []string{"", "one", large, large + "r"} {
		path := writeTool(t, content)
		first := s.add(t, path, content)
		if again := s.add(t, path, content); again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
		s.wantCopies(t, 1)
		if info, err := os.Lstat(first.Path); err != nil || info.Mode() != 0o555 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if twin := s.add(t, writeTool(t, "one"), "one"); twin != s.entry(hashOf("one")) {
		t.Errorf("the same content is %+v", twin)
	}
	wantClean(t, s.Store, "", "one", large, large+"r")
}

func TestAddRefuses(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{"/nonexistent/tool", "cannot look at the tool /nonexistent/tool: no such file"},
		{fifo, "not a regular file"},
		{t.TempDir(), "not a regular file"},
		{writeTool(t, strings.Repeat("x", 1<<20+1)), "raise that bound"},
	} {
		_, err := s.Add(test.path)
		wantError(t, err, test.want)
	}
	wantClean(t, s.Store)
}

func TestSecondProcessDoesNotCopy(t *testing.T) {
	dir, path := t.TempDir(), writeTool(t, "tool")
	open(t, dir, 0).add(t, path, "tool")
	second := open(t, dir, 0)
	second.add(t, path, "tool")
	second.wantCopies(t, 0)
}

// A file that was just changed could change again within its ctime.
func TestYoungFileIsNotRemembered(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	path := writeTool(t, "tool")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, age := range []time.Duration{tick, settledAfter - 1, -time.Hour} {
		s.now = func() time.Time { return time.Unix(0, identify(info).ctime).Add(age) }
		s.add(t, path, "tool")
		s.add(t, path, "tool")
		s.wantCopies(t, 2)
	}
	if names := s.identityNames(); len(names) > 0 || len(s.hashes) > 0 {
		t.Errorf("remembered: %v, %v", names, s.hashes)
	}
}

// F7: whoever may write a tool can set back all times but the ctime.
func TestOverwrittenInPlaceWithTimesRestored(t *testing.T) {
	for name, later := range map[string]func(*testing.T, *testStore) *testStore{
		"same process": func(_ *testing.T, s *testStore) *testStore { return s },
		"restarted":    func(t *testing.T, s *testStore) *testStore { return open(t, s.dir, 0) },
	} {
		for _, clock := range []time.Duration{0, ahead} {
			t.Run(name+" "+clock.String(), func(t *testing.T) {
				s := open(t, t.TempDir(), 0)
				s.now = func() time.Time { return time.Now().Add(clock) }
				path := writeTool(t, "good")
				s.add(t, path, "good")
				before, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				overwrite(t, path, "evil")
				if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
					t.Fatal(err)
				}
				s = later(t, s)
				s.add(t, path, "evil")
				wantClean(t, s.Store, "good", "evil")
			})
		}
	}
}

func TestChangedWhileCopied(t *testing.T) {
	for _, test := range []struct {
		name, next string
		changes    int
	}{
		{"once", "next", 1},
		{"grown", "longer", 1},
		{"shrunk", "-", 2},
		{"always", "next", attempts},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, t.TempDir(), 0)
			path := writeTool(t, "tool")
			changes := 0
			s.copied = func() {
				if changes < test.changes {
					changes++
					overwrite(t, path, test.next)
					// Tell it from a change in the same tick.
					stamp := time.Unix(int64(changes), 0)
					if err := os.Chtimes(path, stamp, stamp); err != nil {
						t.Error(err)
					}
				}
			}
			if test.changes < attempts {
				s.add(t, path, test.next)
				wantClean(t, s.Store, test.next)
				return
			}
			_, err := s.Add(path)
			wantError(t, err, path+": it is being written")
			wantClean(t, s.Store)
		})
	}
}

// A file that another replaces between the look and the open is looked at
// again.
func TestReplacedBeforeOpen(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	path := writeTool(t, "tool")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(writeTool(t, "next"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.take(path, identify(info)); !errors.Is(err, errChanged) {
		t.Errorf("got %v, want errChanged", err)
	}
	s.add(t, path, "next")
}

func TestCorruptedEntryIsReplaced(t *testing.T) {
	for name, corrupt := range map[string]func(path string) error{
		"truncated": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("t"), entryMode))
		},
		"missing": os.Remove,
		"mode":    func(path string) error { return os.Chmod(path, 0o755) },
		"setuid":  func(path string) error { return os.Chmod(path, 0o555|os.ModeSetuid) },
		"link": func(path string) error {
			if err := os.Rename(path, path+"x"); err != nil {
				return err
			}
			return os.Symlink(path+"x", path)
		},
		"owner": func(path string) error {
			if os.Geteuid() != 0 {
				return os.Remove(path)
			}
			return os.Chown(path, 1, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), 0)
			path := writeTool(t, "tool")
			entry := s.add(t, path, "tool")
			if err := corrupt(entry.Path); err != nil {
				t.Fatal(err)
			}
			s.copies.Store(0)
			s.add(t, path, "tool")
			s.wantCopies(t, 1)
			if _, ok := check(entry, 4); !ok {
				t.Error("the copy is still corrupt")
			}
		})
	}
}

func TestManyGoroutinesCopyOnce(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	content := strings.Repeat("x", 3*chunkBytes)
	path := writeTool(t, content)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if entry, err := s.Add(path); err != nil || entry.SHA256 != hashOf(content) {
				t.Errorf("%+v, %v", entry, err)
			}
		})
	}
	all.Wait()
	s.wantCopies(t, 1)
	wantClean(t, s.Store, content)
}

func TestManyProcesses(t *testing.T) {
	dir := t.TempDir()
	args, contents := []string{dir}, []string{}
	for i := range 20 {
		contents = append(contents, strings.Repeat(strconv.Itoa(i), chunkBytes))
		args = append(args, writeTool(t, contents[i]))
	}
	var all sync.WaitGroup
	for range 4 {
		cmd := command(t, "add", args...)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	s := open(t, dir, 0)
	wantClean(t, s.Store, contents...)
	for i, path := range args[1:] {
		s.add(t, path, contents[i])
	}
}

// playAdd adds files to a store.
func playAdd(args []string) error {
	s, err := Open(args[0], 0)
	if err != nil {
		return err
	}
	for _, path := range args[1:] {
		if _, err := s.Add(path); err != nil {
			return err
		}
	}
	return nil
}
