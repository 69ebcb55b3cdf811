package terminal

import "testing"

func TestEscape(t *testing.T) {
	for _, test := range []struct {
		in, tool, command string
	}{
		{"plain\ttext\nä", "plain\ttext\nä", "plain\ttext\nä"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, "\x1b[31mred\x1b[0m"},
		{"\x1b]0;title\a", `\x1b]0;title\x07`, `\x1b]0;title\x07`},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"a\rok: forged", `a\x0dok: forged`, "a\rok: forged"},
		{"\u009b31m", `\x9b31m`, `\x9b31m`},
		{"\xff", `\xff`, `\xff`},
		{"\u202egnp.exe", `\u202egnp.exe`, `\u202egnp.exe`},
	} {
		if got := Escape(test.in, false); got != test.tool {
			t.Errorf("tool: %q becomes %q, want %q", test.in, got, test.tool)
		}
		if got := Escape(test.in, true); got != test.command {
			t.Errorf("command: %q becomes %q, want %q", test.in, got, test.command)
		}
	}
}
