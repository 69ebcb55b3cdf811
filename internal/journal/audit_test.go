package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func audited(t *testing.T, n int) (dir string, j *Journal) {
	t.Helper()
	dir = t.TempDir()
	j = mustOpen(t, dir, Options{})
	for i := range n {
		a, err := j.Audit(Audit{Time: start, Who: "uid 0", Action: "test", What: fmt.Sprint(i)})
		if err != nil || a.Seq != int64(i+1) || len(a.Hash) != 64 {
			t.Fatalf("%+v %v", a, err)
		}
	}
	return dir, j
}

func audits(t *testing.T, dir string) (list []Audit, err error) {
	t.Helper()
	err = mustRead(t, dir).Audits(0, func(a Audit) bool { list = append(list, a); return true })
	return list, err
}

func TestAuditIsAChain(t *testing.T) {
	dir, j := audited(t, 5)
	mustClose(t, j)
	j = mustOpen(t, dir, Options{})
	if a, err := j.Audit(Audit{Time: start, Who: "uid 0", Action: "after a restart", Outcome: strings.Repeat("x", 10_000)}); err != nil || a.Seq != 6 || len(a.Outcome) > 600 {
		t.Errorf("%+v %v", a, err)
	}
	list, err := audits(t, dir)
	if err != nil || len(list) != 6 || list[0].What != "0" || list[5].Action != "after a restart" {
		t.Errorf("%+v %v", list, err)
	}
	seen := 0
	if err := mustRead(t, dir).Audits(2, func(a Audit) bool { seen++; return seen < 2 }); err != nil || seen != 2 {
		t.Errorf("%d, %v", seen, err)
	}
}

// Whatever is changed within the chain shows.
func TestABrokenChainShows(t *testing.T) {
	for change, want := range map[string]string{
		"UPDATE audit SET json = replace(json, 'uid 0', 'uid 1') WHERE seq = 3":                                                     "record 3 is not what was written",
		"UPDATE audit SET hash = zeroblob(32) WHERE seq = 2":                                                                        "record 2 is not what was written",
		"UPDATE audit SET seq = CASE seq WHEN 2 THEN -3 ELSE -2 END WHERE seq IN (2, 3); UPDATE audit SET seq = -seq WHERE seq < 0": "record 2 is not what was written",
		"DELETE FROM audit WHERE seq = 2":                                                                                           "record 2 is missing",
		"DELETE FROM audit WHERE seq = 1":                                                                                           "record 1 is missing",
		"UPDATE audit SET seq = 9 WHERE seq = 5":                                                                                    "record 5 is missing",
		"UPDATE audit_anchor SET hash = x'00'":                                                                                      "record 1 is not what was written",
	} {
		dir, j := audited(t, 5)
		if _, err := j.writer.database.conn.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if _, err := audits(t, dir); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}
