package export

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain name.txt": "plain name.txt",
		"日本語 é":          "日本語 é",
		"100%":           "100%",
		"100%-5%x":       "100%-5%x",
		"%41":            "%2541",
		"a%~b":           "a%25~b",
		"a\nb\x00":       "a%0Ab%00",
		"\xff":           "%FF",
		"\u202e":         "%E2%80%AE",
		"\ufffd":         "\ufffd",
		"%\xff":          "%%FF",
	} {
		if got := escape(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	long := escape(strings.Repeat("\xff", 255))
	if want := strings.Repeat("%FF", 73) + "%~"; !strings.HasPrefix(long, want) || len(long) != len(want)+32 {
		t.Errorf("a long name becomes %q", long)
	}
}

// Whatever the name, its escape is a safe name, and can be undone unless it
// was cut: so no two names meet.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "a", "%41", "%", "%~", "\xff%FF", "é\n", strings.Repeat("\xff", 255), strings.Repeat("é", 120)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 255 || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			t.Skip("no name of a file")
		}
		got := escape(name)
		if !utf8.ValidString(got) || len(got) > 255 || got == "." || got == ".." || strings.Contains(got, "/") {
			t.Fatalf("%q becomes %q", name, got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q becomes %q, which cannot be printed", name, got)
		}
		if !strings.Contains(got, cutMark) && unescape(got) != name {
			t.Fatalf("%q becomes %q, which is %q", name, got, unescape(got))
		}
	})
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
