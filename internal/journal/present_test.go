package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Nothing is said to be on record in files that nobody can find, and what was appended is there once they are back.
func TestAJournalThatIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{DatabaseName, lockName} {
		for _, ahead := range []bool{false, true} {
			dir := t.TempDir()
			j := mustOpen(t, dir, Options{Ahead: ahead})
			first := event("t", 1, "turn_start")
			first.Fresh = true
			mustAppend(t, j, first)
			path := filepath.Join(dir, name)
			must(os.Rename(path, path+".away"))
			must(os.WriteFile(path, nil, 0o600))
			if err := j.Append(event("t", 2, "tool_output")); !errors.Is(err, ErrGone) || !errors.Is(j.Present(), ErrGone) {
				t.Errorf("%s replaced, ahead %t: %v, %v", name, ahead, err, j.Present())
			}
			must(os.Rename(path+".away", path))
			mustAppend(t, j, event("t", 2, "tool_output"))
			mustClose(t, j)
			if got := collect(t, mustRead(t, dir), "t", 0); len(got) != 2 {
				t.Errorf("%s, ahead %t: %d events", name, ahead, len(got))
			}
		}
	}
}

// Who has lost the directory leaves the files of its next owner alone.
func TestTheNextOwnersFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := mustOpen(t, dir, Options{Ahead: true})
	must(os.Remove(filepath.Join(dir, lockName)))
	must(os.Remove(filepath.Join(dir, redoName)))
	second := mustOpen(t, dir, Options{Ahead: true})
	mustClose(t, first)
	if _, err := os.Lstat(filepath.Join(dir, redoName)); err != nil {
		t.Error(err)
	}
	mustAppend(t, second, wholeTurn("t", "shell", "ok")...)
	mustClose(t, second)
}
