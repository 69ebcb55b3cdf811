package wirejson

import (
	"bytes"
	"testing"
)

// Each byte, at each place of a word, behind and before each other one.
func TestOrdinaryText(t *testing.T) {
	for _, around := range []byte{'a', 0x7f, 0x80, 0xff, ' ', '!', '#', '[', ']'} {
		for c := range 256 {
			special := c < ' ' || c == '"' || c == '\\'
			for at := range 24 {
				text := bytes.Repeat([]byte{around}, 24)
				text[at] = byte(c)
				want := len(text)
				if special {
					want = at
				}
				if n := ordinary(text); n != want {
					t.Fatalf("%#x at %d among %#x: %d, want %d", c, at, around, n, want)
				}
			}
		}
	}
	if n := ordinary([]byte("1234567")); n != 0 {
		t.Errorf("%d of less than a word", n)
	}
}
