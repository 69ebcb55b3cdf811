package export

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNameBytes = 255 // NAME_MAX of every common file system
	cutMark      = "%~"
	hashBytes    = 16
)

// escape makes a name printable (see File.Path). Different names stay
// different: a % stays only where no escape can begin, and a cut name ends in
// a hash of the whole.
func escape(name string) string {
	var b strings.Builder
	cut := 0
	for rest := name; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if plain(r, size, rest) {
			b.WriteString(rest[:size])
		} else {
			for _, c := range []byte(rest[:size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		rest = rest[size:]
		if b.Len() <= maxNameBytes-len(cutMark)-2*hashBytes {
			cut = b.Len()
		}
	}
	if b.Len() <= maxNameBytes {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s%s%x", b.String()[:cut], cutMark, sum[:hashBytes])
}

// plain says whether the first character of rest, r, can be kept.
func plain(r rune, size int, rest string) bool {
	switch {
	case r == utf8.RuneError && size == 1: // not UTF-8
		return false
	case r == '%':
		return !strings.HasPrefix(rest, cutMark) && (len(rest) < 3 || !isHex(rest[1]) || !isHex(rest[2]))
	}
	return unicode.IsPrint(r)
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
