package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, dir, epoch string) *ledger {
	t.Helper()
	l, err := openLedger(dir, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func none() []string { return nil }

// A later life knows what the ones before have started, also one that was killed while it
// wrote, and says where it does not know.
func TestLedgerOverLives(t *testing.T) {
	dir := t.TempDir()
	one := open(t, dir, "one")
	if _, err := openLedger(dir, "two"); err == nil || !strings.Contains(err.Error(), "another worker uses") {
		t.Errorf("two workers use one folder: %v", err)
	}
	if err := one.start("c l 1", none); err != nil {
		t.Fatal(err)
	}
	if _, err := one.out.WriteAt([]byte("start c l 2"), one.size); err != nil { // it was killed here
		t.Fatal(err)
	}
	_ = one.close()
	for _, epoch := range []string{"two", "three"} {
		l := open(t, dir, epoch)
		for name, want := range map[string]string{"c l 1": "true true", "c l 2": "true false", "c l 3": "true false"} {
			known, started := l.of("one", name)
			if got := fmt.Sprint(known, started); got != want {
				t.Errorf("%s: %s is %s, want %s", epoch, name, got, want)
			}
		}
		if known, _ := l.of("nosuch", "c l 1"); known {
			t.Error("a life that is not on record is known")
		}
		_ = l.close()
	}
	for i := range maxEarlier {
		_ = open(t, dir, fmt.Sprint("later", i)).close()
	}
	if known, started := open(t, dir, "last").of("one", "c l 1"); known || started {
		t.Error("a life is remembered for ever")
	}
}

// The file may survive a crash of its machine without its last lines: of a life before that it is
// not said that something never started.
func TestLedgerOverACrashOfItsMachine(t *testing.T) {
	dir := t.TempDir()
	one := open(t, dir, "one")
	if err := one.start("c l 1", none); err != nil {
		t.Fatal(err)
	}
	_ = one.close()
	for _, epoch := range []string{"two", "three"} {
		l, err := openLedgerOf(dir, epoch, "the next boot")
		if err != nil {
			t.Fatal(err)
		}
		expectKnown(t, l, map[string]string{"c l 1": "true true", "c l 2": "false false"})
		_ = l.close()
	}
	l, err := openLedgerOf(dir, "four", "the next boot")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if known, _ := l.of("three", "c l 1"); !known {
		t.Error("a life of this boot is not known")
	}
}

// A start that found no room is not on record, whole or in pieces, and those after it are.
func TestLedgerIsFull(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, "one")
	limit := func(bytes uint64) {
		t.Helper()
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}); err != nil {
			t.Fatal(err)
		}
	}
	defer limit(unix.RLIM_INFINITY)
	for range 2 {
		limit(uint64(l.size) + 18) // in the middle of a line, behind where the next ones end
		err := l.start("c l 1234567890", none)
		if limit(unix.RLIM_INFINITY); err == nil {
			t.Fatal("a start is written where no room is")
		}
	}
	for _, name := range []string{"c l 2", "c l 3"} {
		if err := l.start(name, none); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.close()
	l = open(t, dir, "two")
	defer l.close()
	expectKnown(t, l, map[string]string{"c l 1234567890": "true false", "c l 2": "true true", "c l 3": "true true"})
}

// A file that has grown long is written anew with what still runs; of the rest it is not
// said that it never started.
func TestLedgerIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, "one")
	l.lines = maxLines
	if err := l.start("c l 9", func() []string { return []string{"c l 8"} }); err != nil {
		t.Fatal(err)
	}
	if l.lines != 3 {
		t.Errorf("%d lines", l.lines)
	}
	_ = l.close()
	l = open(t, dir, "two")
	defer l.close()
	expectKnown(t, l, map[string]string{"c l 1": "false false", "c l 8": "true true", "c l 9": "true true"})
}

// What cannot be written is an error, and a file that is not a ledger is not taken for one.
func TestLedgerFails(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, "one")
	_ = l.out.Close()
	if err := l.start("c l 1", none); err == nil {
		t.Error("a start is written to a closed file")
	}
	_ = l.lock.Close()
	if err := os.WriteFile(filepath.Join(dir, "ledger"), []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(dir, "two"); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("%v", err)
	}
}

// expectKnown asks what is known of attempts in the life "one", and whether they started.
func expectKnown(t *testing.T, l *ledger, wants map[string]string) {
	t.Helper()
	for name, want := range wants {
		known, started := l.of("one", name)
		if got := fmt.Sprint(known, started); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
