package schema

import (
	"regexp/syntax"
	"testing"
)

// What a pattern is said to come to is what it is compiled to, or a little more.
func TestInstructions(t *testing.T) {
	for _, pattern := range []string{
		"", "a", "^abc$", "[a-z]+", "a|bc|def", "(a)(?:b)*", "x{3}", "x{3,}", "x{0,7}", "x{2,5}y?", "(?i)hello", ".*?", `\pL{100}`,
		"(?:a{10}b{10}){10}", "(?:.?){1000}", "((((a){3}){3}){3}){3}", "[^a]|(b|c)+|d{4,}", `^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$`,
	} {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		said := sizeOf(parsed).instructions
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if is := len(program.Inst); said+3 < is || said > 3*is {
			t.Errorf("%s: said to come to %d instructions, has %d", pattern, said, is)
		}
	}
}
