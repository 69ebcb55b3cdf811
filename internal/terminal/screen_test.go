package terminal

import (
	"bytes"
	"testing"
)

// A line of ours begins below what a command has left, in its own colours.
func TestFresh(t *testing.T) {
	for _, test := range []struct {
		writes []string
		shown  string
		fresh  string
	}{
		{nil, "", ""},
		{[]string{"a\n"}, "a\n", ""},
		{[]string{"a"}, "a", "\n"},
		{[]string{"ok: forged\r"}, "ok: forged\r", "\n"},
		{[]string{"a", "", "b\n"}, "ab\n", ""},
		{[]string{"\x1b[8mhidden\n"}, "\x1b[8mhidden\n", "\x1b[0m"},
		{[]string{"\x1b", "[8mx"}, `\x1b[8mx`, "\n"},
		{[]string{"x\n\u2028"}, "x\n\\u2028", "\n"},
		{[]string{"\xe6\x97", "\xa5\xe6", "\x9c\xac\n"}, "日本\n", ""},
		{[]string{"\x1b[31ma\xe6"}, "\x1b[31ma", `\xe6` + "\x1b[0m\n"},
		{[]string{"a\n\xe6\x97"}, "a\n", `\xe6\x97` + "\n"},
	} {
		var out bytes.Buffer
		var s Screen
		w := s.Escaping(&out)
		for _, text := range test.writes {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%q: %d, %v", text, n, err)
			}
		}
		if fresh := s.Fresh(); out.String() != test.shown || fresh != test.fresh {
			t.Errorf("%q: %q, then %q, want %q and %q", test.writes, out.String(), fresh, test.shown, test.fresh)
		}
		if again := s.Fresh(); again != "" {
			t.Errorf("again: %q", again)
		}
	}
}
