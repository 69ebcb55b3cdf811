package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/journal"
)

// Records that were dropped from the beginning of the chain are not counted.
func TestVerifyCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := j.Audit(journal.Audit{Who: "uid 0", Action: "test", What: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
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
	if got := string(toolhost(t, "log", "verify", "--state", dir, "--config", os.DevNull)); !strings.HasPrefix(got, "the chain holds: 2 records, the last is 3:") {
		t.Errorf("toolhost says %q", got)
	}
}
