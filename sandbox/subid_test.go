package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindRange(t *testing.T) {
	names := []string{"1001", "alice"}
	for _, c := range []struct {
		name, text   string
		start, count int
	}{
		{"by name", "alice:100000:65536\n", 100000, 65536},
		{"by uid", "1001:200000:1000\n", 200000, 1000},
		{"no newline", "alice:1:2", 1, 2},
		{"others first", "bob:1:2\n\n# alice:3:4\nalice:100000:65536\n", 100000, 65536},
		{"the first counts", "1001:5:6\nalice:7:8\n", 5, 6},
		{"after malformed ones", "alice\nalice:x:1\nalice:1:\nalice:-5:10\nalice:0:10\nalice:10:0\nalice:1:2:3\nalice: 1:2\nalice:9:10\n", 9, 10},
	} {
		start, count, err := findRange(subidFile(t, c.text), names)
		if err != nil || start != c.start || count != c.count {
			t.Errorf("%s: %d, %d, %v", c.name, start, count, err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "others only": "bob:1:2\nalicex:1:2\n10011:1:2\n", "malformed": "alice:1\n:::\nalice:a:b\n", "comment": "#alice:1:2\n",
		"a very long line": strings.Repeat("x", 1<<17) + "\n",
	} {
		path := subidFile(t, text)
		_, _, err := findRange(path, names)
		none, ok := errors.AsType[*errNoRange](err)
		if !ok || !strings.Contains(none.reason, path+" grants no ids to alice") || !strings.Contains(none.remedy, `"alice:524288:65536"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := findRange(filepath.Join(t.TempDir(), "missing"), names)
	wantError(t, err, "missing", "grants no ids to alice", "let root add a line", `echo "alice:524288:65536" >>`)
}

func subidFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "subid")
	mustWrite(t, path, text)
	return path
}

func TestSubordinateNeedsItsPrograms(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	file := subidFile(t, callerNames()[0]+":100000:65536\n")
	_, err := subordinate(file, file)
	wantError(t, err, "there is no newuidmap", "apt install uidmap")
	must(t, os.WriteFile(bin+"/newuidmap", nil, 0o755))
	_, err = subordinate(file, file)
	wantError(t, err, "there is no newgidmap", "dnf install shadow-utils")
	must(t, os.WriteFile(bin+"/newgidmap", nil, 0o755))
	for _, c := range []struct {
		uids, gids string
		want       idRange
	}{
		{":100000:65536", ":200000:65536", idRange{100000, 200000, 1, maxSlots}},
		{":100000:100", ":200000:50", idRange{100000, 200000, 1, 50}},
	} {
		got, err := subordinate(subidFile(t, callerNames()[0]+c.uids), subidFile(t, callerNames()[0]+c.gids))
		if err != nil || got != c.want {
			t.Errorf("%+v, %v; want %+v", got, err, c.want)
		}
	}
	_, err = subordinate(file, bin+"/nothing")
	wantError(t, err, bin+"/nothing grants no ids")
}

// A program that fails is named with what it said.
func TestMapRangeThatFails(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	must(t, os.WriteFile(bin+"/newuidmap", []byte("#!/bin/sh\necho write to uid_map failed; exit 1\n"), 0o755))
	err := mapRange(os.Getpid(), idRange{100000, 100000, 1, 10})
	wantError(t, err, "newuidmap failed", "write to uid_map failed", "setuid root")
}
