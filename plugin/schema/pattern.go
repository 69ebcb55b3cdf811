package schema

import (
	"fmt"
	"regexp/syntax"
)

// maxPattern bounds what the patterns of a schema come to, in instructions: a
// few repeats within one another make millions of them.
const maxPattern = 20_000

// countPattern remembers what a pattern comes to. One that is none is found when
// it is compiled.
func (c *checker) countPattern(pattern string) error {
	if _, seen := c.patterns[pattern]; seen {
		return nil
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	n := instructions(parsed)
	if c.patterns[pattern] = n; n > maxPattern || c.instructions+n > maxPattern {
		return fmt.Errorf("its patterns come to more than %d instructions with all repeats, as in {1000}, written out: make them simpler", maxPattern)
	}
	c.instructions += n
	return nil
}

// instructions is about what package regexp compiles an expression to, or any
// number over maxPattern.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		if n += instructions(sub); n > maxPattern {
			return n
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		return max(re.Min, re.Max, 1)*(n+1) + 1 // at most 1000 times
	default:
		return n + len(re.Sub) + 1
	}
}
