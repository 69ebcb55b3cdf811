package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
)

// A journal whose damage shows as it is read hides nothing of the others.
func TestOneDamagedJournal(t *testing.T) {
	dir := t.TempDir()
	first, second := claim(t, dir), claim(t, dir)
	for i, j := range []*journal.Journal{first, second} {
		id := string(rune('a' + i))
		begin(t, j, id)
		end(t, j, id)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(got []string, lacking int) {
		t.Helper()
		l := openLog(t, dir)
		if turns := ids(t, l, api.Filter{}); !slices.Equal(turns, got) || len(l.Lacking()) != lacking {
			t.Errorf("turns %q, lacking %v", turns, l.Lacking())
		}
	}
	expect([]string{"b ended", "a ended"}, 0)
	damage(t, first.Dir())
	expect([]string{"b ended"}, 1)
	l := openLog(t, dir)
	all := func(journal.Event) bool { return true }
	if err := l.Events("b", 0, all); err != nil || len(l.Lacking()) != 1 {
		t.Errorf("the other's turn: %v, lacking %v", err, l.Lacking())
	}
	if err := l.Events("a", 0, all); !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), first.Dir()) {
		t.Errorf("its own: %v", err)
	}
	damage(t, second.Dir())
	if turns, err := openLog(t, dir).Turns(api.Filter{}); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("both are damaged: %v, %v", turns, err)
	}
}

// damage leaves the first page of a database alone, which holds its schema.
func damage(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, journal.DatabaseName)
	data, err := os.ReadFile(name)
	if err == nil {
		for i := 4096; i < len(data); i++ {
			data[i] = 0xff
		}
		err = os.WriteFile(name, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
