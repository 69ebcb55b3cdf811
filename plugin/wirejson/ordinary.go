package wirejson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101 // times a byte: that byte in each place of a word
	highs = 0x80 * ones

	wordBytes = 8
	// shortText is looked at in words, more of it in blocks of blockBytes: most strings
	// are short, and one of many escapes must not have a block searched for each.
	shortText  = 64
	blockBytes = 4 << 10
)

// ordinary says how many bytes have no quotation mark, backslash or control character
// before the first of these; up to seven more may have none.
func ordinary(text []byte) (n int) {
	short := text[:min(len(text), shortText)]
	if n = ordinaryWords(short); n < shortText {
		return n
	}
	for len(text)-n >= blockBytes {
		block := text[n : n+blockBytes]
		found := withoutControls(before(before(block, '"'), '\\'))
		if n += found; found < blockBytes {
			return n
		}
	}
	return n + ordinaryWords(text[n:])
}

// before is text up to the first c.
func before(text []byte, c byte) []byte {
	if at := bytes.IndexByte(text, c); at >= 0 {
		return text[:at]
	}
	return text
}

func ordinaryWords(text []byte) (n int) {
	for ; len(text)-n >= wordBytes; n += wordBytes {
		word := binary.LittleEndian.Uint64(text[n:])
		mark, slash := word^'"'*ones, word^'\\'*ones
		// The high bit of a byte is set where it is 0. A borrow can set others only above
		// such a byte.
		found := ((mark-ones)&^mark|(slash-ones)&^slash)&highs | controls(word)
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	return n
}

// withoutControls is ordinary where there are no quotation marks and backslashes.
func withoutControls(text []byte) (n int) {
	const step = 4 * wordBytes
	for rest := text; len(rest) >= step; rest = rest[step:] {
		a, b := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[wordBytes:])
		c, d := binary.LittleEndian.Uint64(rest[2*wordBytes:]), binary.LittleEndian.Uint64(rest[3*wordBytes:])
		if controls(a)|controls(b)|controls(c)|controls(d) != 0 {
			break
		}
		n += step
	}
	return n + ordinaryWords(text[n:])
}

// controls has the high bit of the first byte below a space set, and perhaps of others
// above it.
func controls(word uint64) uint64 { return (word - ' '*ones) &^ word & highs }
