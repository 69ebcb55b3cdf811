package config

import (
	"os"
	"strings"
	"testing"
)

// Nothing in a file makes Load panic, and every problem has its place. What
// loads can be shown and loaded again.
func FuzzLoad(f *testing.F) {
	raw, err := os.ReadFile(docPath)
	if err != nil {
		f.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	f.Add(text)
	for _, m := range mistakes {
		f.Add(m.text)
	}
	for _, c := range hostCases {
		f.Add(c.text)
	}
	for path, c := range toolCases {
		f.Add("tools: {t: {plugin: bin/search, " + member(path, c.value) + "}}")
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := load(t, text)
		if err != nil {
			checkForm(t, problemsOf(t, err))
			return
		}
		shown := string(l.Show())
		if strings.Contains(shown, hidden) || len(l.Files) > 1 {
			return // cannot mean the same
		}
		again, err := load(t, shown)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown)
		}
		if len(again.Tools) != len(l.Tools) {
			t.Errorf("%d tools, then %d", len(l.Tools), len(again.Tools))
		}
	})
}
