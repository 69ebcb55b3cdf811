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

// The same at each place around where blocks begin and end.
func TestOrdinaryBlocks(t *testing.T) {
	const length = shortText + 2*blockBytes + 24
	text := bytes.Repeat([]byte("é"), length/2)
	if n := ordinary(text); n != length {
		t.Errorf("%d of %d", n, length)
	}
	for at := range length {
		for _, c := range []byte{0, 0x1f, '"', '\\'} {
			was := text[at]
			text[at] = c
			if n := ordinary(text); n > at || n <= at-wordBytes {
				t.Fatalf("%#x at %d: %d", c, at, n)
			}
			text[at] = was
		}
	}
}

func BenchmarkOrdinary(b *testing.B) {
	text := bytes.Repeat([]byte{'x'}, 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if n := ordinary(text); n != len(text) {
			b.Fatal(n)
		}
	}
}
