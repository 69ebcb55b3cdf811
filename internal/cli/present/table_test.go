package present

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, one := range []struct {
		line    string
		columns int
		want    []string
	}{
		{"", 5, []string{""}},
		{"short", 5, []string{"short"}},
		{"two words", 5, []string{"two", "words"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"a abcdefgh", 4, []string{"a", "abcd", "efgh"}},
		{"日本語", 4, []string{"日本", "語"}},
		{"日本", 1, []string{"日", "本"}},
	} {
		if got := Wrap(one.line, one.columns); !slices.Equal(got, one.want) {
			t.Errorf("%q in %d: %q, want %q", one.line, one.columns, got, one.want)
		}
	}
}

// Whatever the cells hold, a page has room for the table, and nothing is lost.
func TestTableFitsThePage(t *testing.T) {
	for _, sizes := range [][]int{{1, 1, 1}, {26, 26, 60}, {10, 300, 90}, {128, 128, 128}, {90, 3, 3}, {500, 1, 1}, {45, 45, 1}} {
		var cells []string
		for i, n := range sizes {
			cells = append(cells, strings.Repeat(string(rune('a'+i)), n))
		}
		var out strings.Builder
		if err := Table(&out, [][]string{{"ONE", "TWO", "THREE"}, cells}, 1); err != nil {
			t.Fatal(err)
		}
		for i, n := range sizes {
			if got := strings.Count(out.String(), string(rune('a'+i))); got != n {
				t.Errorf("%v: %d of %d characters of column %d", sizes, got, n, i)
			}
		}
		for line := range strings.Lines(out.String()) {
			if Columns(strings.TrimSuffix(line, "\n")) > PageColumns {
				t.Errorf("%v: too wide: %s", sizes, line)
			}
		}
		if sizes[0] <= 50 && !strings.Contains(out.String(), cells[0]) {
			t.Errorf("%v: what is copied is broken:\n%s", sizes, out.String())
		}
	}
}
