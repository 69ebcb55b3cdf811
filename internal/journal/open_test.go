package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
)

func TestOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	_, err := Open(dir, Options{})
	expectError(t, err, ErrOwned, fmt.Sprint("process ", os.Getpid()), dir)
	mustAppend(t, j, event("t", 1, "x"))
	mustClose(t, j)
	mustAppend(t, mustOpen(t, dir, Options{}), event("t", 2, "x"))
}

func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "state")
	mustAppend(t, mustOpen(t, dir, Options{}), event("t", 1, "x"))
	expectMode(t, dir, 0o700)
	for _, name := range []string{DatabaseName, DatabaseName + "-wal", DatabaseName + "-shm", lockName} {
		expectMode(t, filepath.Join(dir, name), 0o600)
	}
}

func TestModesAreTightened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, Options{}))
	if err := os.Chmod(filepath.Join(dir, DatabaseName), 0o644); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, dir, Options{}))
	expectMode(t, filepath.Join(dir, DatabaseName), 0o600)
}

func expectMode(t *testing.T, name string, want os.FileMode) {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
	}
}

func TestUnsafePlaces(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Open(open, Options{})
	expectError(t, err, nil, "others can write", "chmod go-w "+open)
	_, err = Open("", Options{})
	expectError(t, err, nil, "no directory named")
	for _, name := range []string{DatabaseName, DatabaseName + "-wal", lockName} {
		dir := t.TempDir()
		victim := filepath.Join(t.TempDir(), "victim")
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, Options{})
		expectError(t, err, nil, "cannot open the journal", name)
		if _, err := os.Lstat(victim); err == nil {
			t.Errorf("a link at %s was followed", name)
		}
		if name == DatabaseName {
			_, err = OpenReader(dir)
			expectError(t, err, nil, "not a plain file")
		}
	}
}

func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs CAP_CHOWN, to give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	expectError(t, err, nil, "belongs to uid 12345")
}

func TestDamageIsMovedAside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		unclean bool
		damage  func(data []byte) []byte
	}{
		{"garbage header", false, func(data []byte) []byte { copy(data, bytes.Repeat([]byte("garbage!"), 16)); return data }},
		{"truncated", false, func(data []byte) []byte { return data[:len(data)/2/4096*4096] }},
		{"cut in a page", false, func(data []byte) []byte { return data[:5000] }},
		{"emptied", false, func([]byte) []byte { return nil }},
		{"garbage", false, func([]byte) []byte { return []byte("hello") }},
		{"schema", false, func(data []byte) []byte { clear(data[4096+3 : 12*4096]); return data }},
		// Found only by looking at every page, as after an unclean end.
		{"garbage inside", true, func(data []byte) []byte { clear(data[5*4096+3 : 12*4096]); return data }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, DatabaseName)
			fillSome(t, dir)
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			damaged := c.damage(data)
			if err := os.WriteFile(name, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.unclean {
				if err := os.WriteFile(filepath.Join(dir, lockName), []byte("4711\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expectMovedAside(t, dir, damaged)
		})
	}
}

// fillSome leaves a database of some megabytes.
func fillSome(t *testing.T, dir string) {
	t.Helper()
	j := mustOpen(t, dir, Options{})
	for seq := range int64(50) {
		mustAppend(t, j, bulky(seq+1))
	}
	mustClose(t, j)
}

func expectMovedAside(t *testing.T, dir string, content []byte) {
	t.Helper()
	var log bytes.Buffer
	j := mustOpen(t, dir, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	report := j.Report()
	if !errors.Is(report.Damage, ErrCorrupt) || !strings.HasPrefix(report.MovedAside, filepath.Join(dir, DatabaseName+".corrupt-2")) {
		t.Fatalf("report %+v", report)
	}
	kept, err := os.ReadFile(report.MovedAside)
	if err != nil || !bytes.Equal(kept, content) {
		t.Errorf("%d bytes were kept of %d, error %v", len(kept), len(content), err)
	}
	if !strings.Contains(log.String(), report.MovedAside) {
		t.Errorf("the log does not tell: %s", log.String())
	}
	mustAppend(t, j, event("new", 1, "x"))
	mustClose(t, j)
	if r := mustOpen(t, dir, Options{}).Report(); r.MovedAside != "" {
		t.Errorf("moved aside again: %+v", r)
	}
}

// A database that has gone is told of, with what is left of it.
func TestAMissingDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, DatabaseName)
	open := func() (Report, string) {
		t.Helper()
		var log bytes.Buffer
		j := mustOpen(t, dir, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log}), Now: func() time.Time { return start }})
		defer mustClose(t, j)
		return j.Report(), log.String()
	}
	for _, gone := range []bool{false, true, false} { // the first one was never there
		if gone {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if r, log := open(); r.Missing != gone || strings.Contains(log, "is missing") != gone || r.Damage != nil {
			t.Errorf("gone %t: %+v, log %s", gone, r, log)
		}
	}
	if err := os.Rename(name, name+"-wal"); err != nil {
		t.Fatal(err)
	}
	r, _ := open()
	if r.Missing || r.Damage == nil || !strings.Contains(r.Damage.Error(), "it is missing, and its log") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(r.MovedAside); err != nil {
		t.Errorf("moved aside: %v", err)
	}
}

func TestDamageTwiceInASecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 3 {
		mustClose(t, mustOpen(t, dir, Options{}))
		if err := os.WriteFile(filepath.Join(dir, DatabaseName), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		mustClose(t, mustOpen(t, dir, Options{Now: func() time.Time { return start }}))
	}
	if kept, err := filepath.Glob(filepath.Join(dir, DatabaseName+".corrupt-*")); len(kept) != 3 {
		t.Errorf("kept %v, error %v", kept, err)
	}
}

func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillSome(t, dir)
	name := filepath.Join(dir, DatabaseName)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	copy(data[68:], "else") // the application id
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	expectError(t, err, nil, "not a journal of toolhost")
	_, err = OpenReader(dir)
	expectError(t, err, nil, "not a journal of toolhost")
	if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, data) {
		t.Errorf("somebody else's database was changed, error %v", err)
	}
}

// Readers understand what an owner of before has, as far as it has what they read.
func TestReadersOfOlderJournals(t *testing.T) {
	t.Parallel()
	for version := range len(migrations) + 1 {
		dir := t.TempDir()
		d, err := openDatabase(t.Context(), dir, false, migrations[:version])
		if err == nil && version > 0 {
			_, err = d.conn.ExecContext(t.Context(), "INSERT INTO turns (turn_id, started) VALUES ('old', 1)")
		}
		if err = errors.Join(err, d.close()); err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(dir)
		switch {
		case version == 0:
			expectError(t, err, fs.ErrNotExist)
		case version < readable:
			expectError(t, err, nil, fmt.Sprintf("version %d, readers need %d", version, readable))
		case err != nil:
			t.Errorf("version %d: %v", version, err)
		default:
			if list, err := r.Turns(api.Filter{}); err != nil || len(list) != 1 {
				t.Errorf("version %d: %+v, %v", version, list, err)
			}
			_ = r.Close()
		}
	}
}

func TestMigrationToAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := wholeTurn("t", "shell", "ok")
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, want...)
	mustClose(t, j)
	steps := append(migrations[:len(migrations):len(migrations)], "ALTER TABLE turns ADD COLUMN label TEXT NOT NULL DEFAULT 'none'; CREATE INDEX by_label ON turns(label);")

	known := len(migrations)
	bad := append(steps[:known:known], steps[known]+"CREATE TABLE turns (x);")
	_, err := open(dir, Options{}, bad)
	expectError(t, err, nil, fmt.Sprintf("from version %d to %d", known, known+1), "already exists")
	expectSame(t, collect(t, mustRead(t, dir), "t", 0), want) // still the old version

	for range 2 {
		if j, err = open(dir, Options{}, steps); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
	}
	r, err := openReader(dir, known+1)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	expectSame(t, collect(t, r, "t", 0), want)
	var label string
	if err := r.db.QueryRow("SELECT label FROM turns").Scan(&label); err != nil || label != "none" {
		t.Errorf("label %q, error %v", label, err)
	}
	_, err = Open(dir, Options{})
	expectError(t, err, ErrNewer, fmt.Sprintf("version %d", known+1), fmt.Sprintf("up to %d", known))
	_, err = OpenReader(dir)
	expectError(t, err, ErrNewer)
}
