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
		{"a\b\v\f\u0085\u2028\u2029\u200f", `a\x08\x0b\x0c\x85\u2028\u2029\u200f`, `a\x08\x0b\x0c\x85\u2028\u2029\u200f`},
		{"soft\u00ad ❤\ufe0f\u200d🔥 \u2800⣿", "soft\u00ad ❤\ufe0f\u200d🔥 \u2800⣿", "soft\u00ad ❤\ufe0f\u200d🔥 \u2800⣿"},
		{"a\u200b\u2060\ufeff\U000e0100", `a\u200b\u2060\ufeff\U000e0100`, `a\u200b\u2060\ufeff\U000e0100`},
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

func TestOneLineAndCell(t *testing.T) {
	for _, test := range []struct{ in, line, cell string }{
		{"plain", "plain", "plain"},
		{"rm\u200b \U000e0041\u3164\u00ad", `rm\u200b \U000e0041\u3164\u00ad`, `rm\u200b \U000e0041\u3164\u00ad`},
		{"❤\ufe0f\u200d🔥\u2800", `❤\ufe0f\u200d🔥\u2800`, `❤\ufe0f\u200d🔥\u2800`},
		{"a\nok\tb", "a\\nok\tb", "a\\nok\\tb"},
	} {
		if line, cell := OneLine(test.in), Cell(test.in); line != test.line || cell != test.cell {
			t.Errorf("%q becomes %q and %q, want %q and %q", test.in, line, cell, test.line, test.cell)
		}
	}
}
