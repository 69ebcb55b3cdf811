package console

import (
	"os"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/terminal"
)

// The console and the terminal show the same characters that are unseen: a human may
// approve at either.
func TestUnseenCharacters(t *testing.T) {
	raw, err := os.ReadFile("static/js/format.js")
	if err != nil {
		t.Fatal(err)
	}
	unseen, ofWriting := pattern(t, raw, "unseen"), pattern(t, raw, "ofWriting")
	for r := rune(0); r <= utf8.MaxRune; r++ {
		s := string(r)
		if !utf8.ValidRune(r) || r == '\n' {
			continue
		}
		marked := unseen.MatchString(s)
		if got := terminal.OneLine(s) != s; got != marked {
			t.Errorf("U+%04X in a line: marked in the terminal: %v, in the console: %v", r, got, marked)
		}
		marked = marked && !ofWriting.MatchString(s)
		if got := terminal.Escape(s, false) != s; got != marked {
			t.Errorf("U+%04X in output: marked in the terminal: %v, in the console: %v", r, got, marked)
		}
	}
}

// pattern reads a constant of JavaScript as a regular expression of Go.
func pattern(t *testing.T, source []byte, name string) *regexp.Regexp {
	t.Helper()
	found := regexp.MustCompile(`const ` + name + ` = /(.*)/g?u;`).FindSubmatch(source)
	if found == nil {
		t.Fatalf("no regular expression %s", name)
	}
	return regexp.MustCompile(regexp.MustCompile(`\\u\{?([0-9a-f]+)\}?`).ReplaceAllString(string(found[1]), `\x{$1}`))
}
