package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary plays the other processes: STORE_TEST_ROLE names the part.
const roleVar = "STORE_TEST_ROLE"

var roles = map[string]func(args []string) error{
	"tool":   func([]string) error { return nil },
	"add":    playAdd,
	"full":   playFull,
	"noexec": playNoExec,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// command plays a role in a process of its own.
func command(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	return cmd
}

// mountNamespace lets a role mount what nobody else sees.
func mountNamespace(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("missing: root rights (to mount a tmpfs)")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// testStore counts its copyings. Its clock is ahead, so that files just made
// are old enough to be remembered.
type testStore struct {
	*Store
	copies atomic.Int64
}

const ahead = 2 * settledAfter

func open(t *testing.T, dir string, maxBytes int64) *testStore {
	t.Helper()
	s, err := Open(dir, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	counted := &testStore{Store: s}
	s.now = func() time.Time { return time.Now().Add(ahead) }
	s.copied = func() { counted.copies.Add(1) }
	return counted
}

// add wants the copy to be what content says.
func (s *testStore) add(t *testing.T, path, content string) Entry {
	t.Helper()
	entry, err := s.Add(path)
	if err != nil {
		t.Fatal(err)
	}
	want := hashOf(content)
	if entry.SHA256 != want || filepath.Base(entry.Path) != want {
		t.Fatalf("got %+v for %.20q, want the hash %s", entry, content, want)
	}
	if got, err := os.ReadFile(entry.Path); err != nil || string(got) != content {
		t.Fatalf("the copy has %.20q, %v; want %.20q", got, err, content)
	}
	return entry
}

func (s *testStore) wantCopies(t *testing.T, want int64) {
	t.Helper()
	if got := s.copies.Swap(0); got != want {
		t.Errorf("%d copyings, want %d", got, want)
	}
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func writeTool(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	overwrite(t, path, content)
	return path
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// wantClean wants nothing in the store but these copies.
func wantClean(t *testing.T, s *Store, contents ...string) {
	t.Helper()
	want := map[string]bool{identities: true}
	for _, content := range contents {
		want[hashOf(content)] = true
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !want[entry.Name()] {
			t.Errorf("%s is in the store", entry.Name())
		}
		delete(want, entry.Name())
	}
	if len(want) > 0 {
		t.Errorf("not in the store: %v", want)
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}
