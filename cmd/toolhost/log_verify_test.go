package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/journal"
)

// Records that were dropped from the beginning of the chain are not counted, nor is the
// chain called broken for one that was noted.
func TestVerifyCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noted := chainOfThree(t, dir)
	dropFirst(t, dir)
	verify := func(expect ...string) (text string, code int) {
		cmd := exec.Command(testBinary(t), append([]string{asToolhost, "log", "verify", "--state", dir, "--config", os.DevNull}, expect...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	holds := "the chain holds: 2 records, the last is " + noted[2]
	for name, test := range map[string]struct {
		expect []string
		want   string
		code   int
	}{
		"none":        {nil, holds, exit.OK},
		"the last":    {[]string{"--expect", noted[2]}, holds, exit.OK},
		"in capitals": {[]string{"--expect", strings.ToUpper(noted[2])}, holds, exit.OK},
		"another":     {[]string{"--expect", "2" + noted[2][1:]}, "toolhost: the chain of audit records is broken: record 2 with that hash is not in it", exit.Failed},
		"a dropped":   {[]string{"--expect", noted[0]}, "toolhost: the record is not kept any more: the oldest is 2: expect a later one than 1", exit.Failed},
	} {
		if text, code := verify(test.expect...); text != test.want+"\n" || code != test.code {
			t.Errorf("%s: %d, %q, want %d, %q", name, code, text, test.code, test.want)
		}
	}
}

// chainOfThree makes a journal with a chain of three records, which it gives as SEQ:HASH.
func chainOfThree(t *testing.T, dir string) (noted []string) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		a, err := j.Audit(journal.Audit{Who: "uid 0", Action: "test", What: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		noted = append(noted, fmt.Sprintf("%d:%s", a.Seq, a.Hash))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return noted
}

func dropFirst(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{"UPDATE audit_anchor SET (seq, hash) = (SELECT seq, hash FROM audit WHERE seq = 1)", "DELETE FROM audit WHERE seq = 1"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}
