// Package wirejson judges JSON of tools and clients before anybody else has to
// read it. Programs differ in what they take: a depth of thousands ends Python,
// jq and Node, numbers beyond float64 become infinities or errors, a key that is
// there twice has one value or the other, and half a surrogate pair is not text.
// What Clean returns is read by all of them, and as the same.
package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// MaxDepth bounds how deep objects and arrays are nested.
	MaxDepth = 128
	// MaxNumberBytes bounds a number as it is written.
	MaxNumberBytes = 1000
)

// Unfit is why JSON, though it is JSON, is not passed on.
type Unfit struct {
	Reason  string
	TooMany bool // values
}

func (e *Unfit) Error() string { return e.Reason }

func unfit(format string, args ...any) error { return &Unfit{Reason: fmt.Sprintf(format, args...)} }

// IsUnfit says whether an error is about JSON that is not passed on, and not
// about what is not JSON at all.
func IsUnfit(err error) bool {
	_, is := errors.AsType[*Unfit](err)
	return is
}

// IsTooMany says whether an error is about the number of values.
func IsTooMany(err error) bool {
	e, is := errors.AsType[*Unfit](err)
	return is && e.TooMany
}

// Clean returns one JSON value in UTF-8 as it can be passed on: half a surrogate
// pair becomes U+FFFD. It refuses, as Unfit, what is nested deeper than MaxDepth,
// numbers that are longer than MaxNumberBytes or that no float64 holds, and keys
// that are there twice in one object. What it returns shares raw's memory where
// nothing is changed.
func Clean(raw []byte) (json.RawMessage, error) {
	return clean(&scanner{raw: raw})
}

// CleanArguments is Clean for what a caller sends: whether a number is in range
// is for the schema of its receiver to say.
func CleanArguments(raw []byte) (json.RawMessage, error) {
	return clean(&scanner{raw: raw, anyRange: true})
}

func clean(s *scanner) (json.RawMessage, error) {
	if err := s.scan(); err != nil {
		return nil, err
	}
	if s.halves == 0 {
		return s.raw, nil
	}
	return mended(s.raw), nil
}

// Check says what Clean would say.
func Check(raw []byte) error { return (&scanner{raw: raw}).scan() }

// CheckObject judges one object that a client sends: beside the other bounds, it
// has at most so many values, and its numbers may be any. values is how many it
// has, those of members and elements included.
func CheckObject(raw []byte, maxValues int) (values int, err error) {
	s := scanner{raw: raw, early: true, anyNumber: true, object: true, maxValues: maxValues}
	err = s.scan()
	return s.values, err
}

// CheckMessage is CheckObject for any value. That it has too many values it finds
// also behind what is unfit otherwise.
func CheckMessage(raw []byte, maxValues int) (values int, err error) {
	s := scanner{raw: raw, anyNumber: true, maxValues: maxValues}
	err = s.scan()
	return s.values, err
}

// mended replaces what is half a surrogate pair, in escapes of six bytes.
func mended(raw []byte) []byte {
	out := bytes.Clone(raw)
	for at := 0; at < len(out); at++ {
		if out[at] != '\\' {
			continue
		}
		if out[at+1] != 'u' {
			at++
			continue
		}
		if length, half := escape(out[at:]); half {
			copy(out[at:], `\ufffd`)
			at += 5
		} else {
			at += length - 1
		}
	}
	return out
}

// escape is the length of the \u escape that b begins with, both of a pair, and
// whether it is half of one.
func escape(b []byte) (length int, half bool) {
	const pair = 12
	first := hex4(b[2:])
	switch {
	case first < 0xd800 || first > 0xdfff:
		return 6, false
	case first < 0xdc00 && len(b) >= pair && b[6] == '\\' && b[7] == 'u' && isHex4(b[8:]):
		if second := hex4(b[8:]); second >= 0xdc00 && second <= 0xdfff {
			return pair, false
		}
	}
	return 6, true
}

func isHex4(b []byte) bool {
	for _, c := range b[:4] {
		if _, ok := hex(c); !ok {
			return false
		}
	}
	return true
}

func hex4(b []byte) (n int) {
	for _, c := range b[:4] {
		digit, _ := hex(c)
		n = n<<4 | digit
	}
	return n
}

func hex(c byte) (int, bool) {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0'), true
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10, true
	}
	return 0, false
}
