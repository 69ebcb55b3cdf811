package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// JSON is w for JSON, whose encoders leave characters in strings alone that a
// terminal obeys, or shows as nothing: these are escaped where w is one. Every write has to be of
// whole characters.
func JSON(w io.Writer) io.Writer {
	if f, ok := w.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		return jsonWriter{w}
	}
	return w
}

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.w.Write(escapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escapeJSON gives the same values in JSON. Beside the line ends that lay it out,
// it is only strings that can hold such characters.
func escapeJSON(raw []byte) []byte {
	if !slices.ContainsFunc(bytes.Runes(raw), obeyed) {
		return raw
	}
	var b bytes.Buffer
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if obeyed(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.Write(raw[:size])
		}
		raw = raw[size:]
	}
	return b.Bytes()
}

// obeyed is what a terminal may obey, or show as nothing. JSON has no bytes that are not UTF-8: of
// these, which a terminal may take for controls, nothing is kept.
func obeyed(r rune) bool { return isC1(r) || unseen(r) || r == utf8.RuneError }
