package wirejson

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// scanner reads JSON once, without recursion and without making anything of it:
// only keys are remembered, until their object ends. What is unfit does not end
// the scan: it may yet turn out to be no JSON.
type scanner struct {
	raw       []byte
	object    bool // one is wanted
	early     bool // ends with what is unfit
	anyNumber bool // of any length and range
	anyRange  bool
	maxValues int
	outer     int // how deep raw stands in something else

	at     int
	open   []byte // the brackets that are open, of 2 bytes at most for each 3 of raw
	values int
	halves int // of surrogate pairs
	keys   keys
	unfit  error // the first
}

var errEarly = errors.New("the JSON ends too early")

func (s *scanner) scan() error {
	if !utf8.Valid(s.raw) {
		return errors.New("the JSON is not UTF-8")
	}
	s.space()
	if s.object && s.at < len(s.raw) && s.raw[s.at] != '{' {
		if err := (&scanner{raw: s.raw, anyNumber: true}).scan(); err != nil && !IsUnfit(err) {
			return err
		}
		return errors.New("this is not a JSON object")
	}
	if err := s.value(); err != nil {
		return err
	}
	for len(s.open) > 0 {
		if s.early && s.unfit != nil {
			return s.unfit
		}
		if err := s.next(); err != nil {
			return err
		}
	}
	if s.space(); s.at < len(s.raw) {
		return fmt.Errorf("the JSON goes on after its %s", s.what())
	}
	return s.unfit
}

func (s *scanner) what() string {
	if s.object {
		return "JSON object"
	}
	return "value"
}

// note keeps the first reason why the JSON is not passed on.
func (s *scanner) note(format string, args ...any) {
	if s.unfit == nil {
		s.unfit = unfit(format, args...)
	}
}

// next reads a member or an element of the innermost that is open, or its end.
func (s *scanner) next() error {
	in := s.open[len(s.open)-1]
	first := in&begun == 0
	s.open[len(s.open)-1] |= begun
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c == closing(in) {
		s.at++
		s.close()
		return nil
	}
	if !first {
		if c != ',' {
			return s.broken("a comma or the end is missing")
		}
		s.at++
		if _, err := s.peek(); err != nil {
			return err
		}
	}
	if in&^begun == '{' {
		if err := s.member(); err != nil {
			return err
		}
	}
	return s.value()
}

// begun marks an open bracket after which something has come.
const begun = 0x80

func closing(open byte) byte { return open&^begun + 2 } // in ASCII

// member reads a key and its colon.
func (s *scanner) member() error {
	if s.raw[s.at] != '"' {
		return s.broken("a key is missing")
	}
	from := s.at
	plain, err := s.text()
	if err != nil {
		return err
	}
	if s.unfit == nil {
		s.keys.add(s.raw, from+1, s.at-1, plain)
	}
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != ':' {
		return s.broken("a colon is missing")
	}
	s.at++
	_, err = s.peek()
	return err
}

// value reads a value, of an object or an array only its beginning.
func (s *scanner) value() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if s.values++; s.maxValues > 0 && s.values == s.maxValues+1 {
		// Before all else: whoever reads it must not decode it.
		s.unfit = &Unfit{Reason: fmt.Sprintf("the JSON has more than %d values", s.maxValues), TooMany: true}
	}
	switch {
	case c == '{' || c == '[':
		s.at++
		s.begin(c)
		return nil
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if c == word[0] {
			return s.word(word)
		}
	}
	return s.broken("a value is missing")
}

func (s *scanner) begin(bracket byte) {
	s.open = append(s.open, bracket)
	if s.outer+len(s.open) > MaxDepth {
		s.note("the JSON is nested deeper than %d", MaxDepth)
	}
	if bracket == '{' && s.unfit == nil {
		s.keys.begin()
	}
}

func (s *scanner) close() {
	bracket := s.open[len(s.open)-1] &^ begun
	s.open = s.open[:len(s.open)-1]
	if bracket != '{' || s.unfit != nil {
		return
	}
	if key, twice := s.keys.end(s.raw); twice {
		s.note("the key %.64q is there twice in one object", key)
	}
}

func (s *scanner) word(word string) error {
	for i := range len(word) {
		if s.at == len(s.raw) {
			return errEarly
		}
		if s.raw[s.at] != word[i] {
			return s.broken("a value is missing")
		}
		s.at++
	}
	return nil
}

// text reads a string; plain is one without escapes.
func (s *scanner) text() (plain bool, err error) {
	plain = true
	for s.at++; s.at < len(s.raw); {
		s.at += ordinary(s.raw[s.at:])
		if s.at == len(s.raw) {
			break
		}
		switch c := s.raw[s.at]; {
		case c == '"':
			s.at++
			return plain, nil
		case c < ' ':
			return false, s.broken("a string has a control character")
		case c == '\\':
			plain = false
			if err := s.escaped(); err != nil {
				return false, err
			}
		default:
			s.at++
		}
	}
	return false, errEarly
}

func (s *scanner) escaped() error {
	rest := s.raw[s.at:]
	if len(rest) < 2 {
		return errEarly
	}
	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return nil
	case 'u':
		if len(rest) < 6 {
			return errEarly
		}
		if !isHex4(rest[2:]) {
			break
		}
		length, half := escape(rest)
		if half {
			s.halves++
		}
		s.at += length
		return nil
	}
	return s.broken("a string has an escape that JSON does not know")
}

// number reads one and sees that it is not out of bounds.
func (s *scanner) number() error {
	from := s.at
	if s.raw[s.at] == '-' {
		s.at++
	}
	zero := s.at < len(s.raw) && s.raw[s.at] == '0'
	digits := s.digits()
	if digits == 0 || zero && digits > 1 {
		return s.incomplete("a number is not valid JSON")
	}
	if s.has('.') && s.digits() == 0 {
		return s.incomplete("a number has no digits after its point")
	}
	exponent := s.has('e') || s.has('E')
	if exponent {
		_ = s.has('+') || s.has('-')
		if s.digits() == 0 {
			return s.incomplete("a number has no digits in its exponent")
		}
	}
	if !s.anyNumber {
		s.judge(s.raw[from:s.at], exponent)
	}
	return nil
}

func (s *scanner) judge(number []byte, exponent bool) {
	const surely = 300 // digits that a float64 holds
	switch {
	case len(number) > MaxNumberBytes:
		s.note("the JSON has a number of %d characters, over %d", len(number), MaxNumberBytes)
	case !s.anyRange && (exponent || len(number) > surely):
		if _, err := strconv.ParseFloat(string(number), 64); err != nil {
			s.note("the JSON has the number %.32s, which is beyond what a float64 holds", number)
		}
	}
}

func (s *scanner) digits() (n int) {
	for s.at < len(s.raw) && '0' <= s.raw[s.at] && s.raw[s.at] <= '9' {
		s.at++
		n++
	}
	return n
}

// has reads one byte, if it is the next.
func (s *scanner) has(c byte) bool {
	if s.at < len(s.raw) && s.raw[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte that is not space.
func (s *scanner) peek() (byte, error) {
	if s.space(); s.at == len(s.raw) {
		return 0, errEarly
	}
	return s.raw[s.at], nil
}

func (s *scanner) incomplete(why string) error {
	if s.at == len(s.raw) {
		return errEarly
	}
	return s.broken(why)
}

func (s *scanner) broken(why string) error {
	return fmt.Errorf("this is not JSON: %s at byte %d", why, s.at+1)
}
