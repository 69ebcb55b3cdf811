package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Damage to the redo log does not pass for its end: what is intact is replayed, and the file is kept. What an owner
// leaves that dies while it appends is no damage.
func TestADamagedRedoLogIsSetAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Ahead: true})
	j.mu.Lock()
	defer j.mu.Unlock()
	ends := []int64{redoHeadBytes}
	for _, turn := range []string{"a", "b", "c"} {
		mustAppend(t, j, freshTurn(turn)...)
		ends = append(ends, j.ahead.redo.end)
	}
	garbage := []byte{1, 2, 3, 4}
	for name, test := range map[string]struct {
		harm  func(*os.File) error
		left  string
		aside int
	}{
		"nothing":       {func(*os.File) error { return nil }, "abc", 0},
		"torn":          {func(f *os.File) error { _, err := f.WriteAt(make([]byte, 40), ends[3]-40); return err }, "ab", 0},
		"first":         {func(f *os.File) error { _, err := f.WriteAt(garbage, ends[0]+100); return err }, "bc", 1},
		"middle":        {func(f *os.File) error { _, err := f.WriteAt(garbage, ends[1]+100); return err }, "ac", 1},
		"middle's head": {func(f *os.File) error { _, err := f.WriteAt(garbage, ends[1]); return err }, "ac", 1},
		"header":        {func(f *os.File) error { _, err := f.WriteAt(garbage, 0); return err }, "", 1},
		"cut":           {func(f *os.File) error { return f.Truncate(ends[2] + 100) }, "ab", 1},
		"cut to zero":   {func(f *os.File) error { return f.Truncate(0) }, "", 0},
	} {
		for _, by := range []string{"owner", "reader"} {
			copied := copyOf(t, dir)
			file, err := os.OpenFile(filepath.Join(copied, redoName), os.O_RDWR, 0)
			if err := errors.Join(err, test.harm(file), file.Close()); err != nil {
				t.Fatal(err)
			}
			if by == "owner" {
				mustClose(t, mustOpen(t, copied, Options{Ahead: true}))
			}
			r, left := mustRead(t, copied), ""
			for _, turn := range []string{"a", "b", "c"} {
				if r.expectTurn(turn) == nil {
					left += turn
				}
			}
			aside, _ := filepath.Glob(filepath.Join(copied, redoName+".corrupt-*"))
			if by == "reader" && test.left == "" {
				test.aside = 0 // it leaves to the owner what it can make nothing of
			}
			if left != test.left || len(aside) != test.aside {
				t.Errorf("%s, by the %s: the turns %q are there, and %v", name, by, left, aside)
			}
			if by == "reader" && (r.Lacking() != nil) != (len(aside) > 0) {
				t.Errorf("%s: the reader lacks %v", name, r.Lacking())
			}
		}
	}
}
