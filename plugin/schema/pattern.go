package schema

import (
	"fmt"
	"regexp/syntax"
)

// What the patterns of a schema may come to, in instructions: a few repeats
// within one another make millions of them. maxRunes bounds the ranges of their
// character classes: \pL alone has hundreds.
const (
	maxPattern  = 20_000 // one, in bytes, too
	maxPatterns = 200_000
	maxRunes    = 1 << 20
)

// countPattern adds a pattern's compiled size; each is compiled wherever it
// stands. A syntax error is reported then.
func (c *checker) countPattern(pattern string) error {
	size, seen := c.patterns[pattern]
	if !seen {
		size = patternSize(pattern)
		c.patterns[pattern] = size
	}
	c.instructions, c.runes = c.instructions+size.instructions, c.runes+size.runes
	switch {
	case len(pattern) > maxPattern || size.instructions > maxPattern:
		return fmt.Errorf("one of its patterns comes to more than %d instructions with all repeats, as in {1000}, written out: make it simpler", maxPattern)
	case c.instructions > maxPatterns || c.runes > maxRunes:
		return fmt.Errorf("its patterns come to more than %d instructions, with all repeats written out, or %d characters in classes: make them simpler", maxPatterns, maxRunes)
	}
	return nil
}

// patternSize does not look at what is refused for its length.
func patternSize(pattern string) (s size) {
	if parsed, err := syntax.Parse(pattern[:min(len(pattern), maxPattern)], syntax.Perl); err == nil {
		s = sizeOf(parsed)
	}
	return s
}

// size is what an expression takes when it is compiled.
type size struct {
	instructions int // about, or any number over maxPattern
	runes        int // of its classes, which repeats share
}

func sizeOf(re *syntax.Regexp) (s size) {
	for _, sub := range re.Sub {
		of := sizeOf(sub)
		s.instructions, s.runes = min(s.instructions+of.instructions, maxPattern+1), s.runes+of.runes
	}
	switch re.Op {
	case syntax.OpLiteral:
		s.instructions = len(re.Rune)
	case syntax.OpRepeat:
		s.instructions = max(re.Min, re.Max, 1)*(s.instructions+1) + 1 // at most 1000 times
	case syntax.OpCharClass:
		s.instructions, s.runes = 1, len(re.Rune)
	default:
		s.instructions += len(re.Sub) + 1
	}
	return s
}
