// Package redact takes secrets out of what a tool gives out, wherever they
// occur exactly: out of whole texts, of streams cut anywhere, and of JSON,
// which stays valid.
//
// Beside a secret itself it knows the forms in which encoders pass it on: the
// inside of a JSON string and percent-encoding, whichever characters an encoder
// escapes and how, and base64 of text around it (both alphabets, any alignment;
// of secrets of 8 bytes and more).
// Of base64 the characters that a secret shares with its neighbours stay: at
// most 4 bits at either end. What it does not find: other encodings, base64
// cut into lines, a secret split by anything, and parts of one. It is a net
// under tools that are careless, not a wall around tools that are hostile.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Replacement stands for each run of bytes that belong to secrets.
const Replacement = "[REDACTED]"

const (
	// MinBytes is the shortest secret: taking out shorter ones would shred
	// output that has nothing to do with them.
	MinBytes = 4
	// MaxBytes is the longest, and MaxTotalBytes what all of a Set may have: a
	// stream may hold back as much, several times where a form is longer.
	MaxBytes      = 16 << 10
	MaxTotalBytes = 256 << 10
	// minBase64Bytes keeps chance from looking like a secret's base64.
	minBase64Bytes = 8
)

// Set is the secrets to take out. It never changes and may be used by several
// goroutines at once. A nil Set is empty and changes nothing.
type Set struct {
	secrets []string
	machine *machine
}

// New makes a Set. Line ends behind a secret are not part of it, as files have
// them; an empty secret is left out. One of fewer than MinBytes or more than
// MaxBytes bytes is an error, which names it by its place alone; so is too much
// in all.
func New(secrets ...[]byte) (*Set, error) { return (*Set)(nil).With(secrets...) }

// With is a Set of more secrets.
func (s *Set) With(secrets ...[]byte) (*Set, error) {
	var all []string
	if s != nil {
		all = slices.Clone(s.secrets)
	}
	for i, raw := range secrets {
		if err := Check(raw); err != nil {
			return nil, fmt.Errorf("secret %d of %d %w", i+1, len(secrets), err)
		}
		if secret := trimmed(raw); secret != "" {
			all = append(all, secret)
		}
	}
	if len(all) == 0 {
		return nil, nil // an empty Set
	}
	if total := len(strings.Join(all, "")); total > MaxTotalBytes {
		return nil, fmt.Errorf("the secrets have %d bytes in all: at most %d can be taken out of output", total, MaxTotalBytes)
	}
	var patterns []string
	for _, secret := range all {
		patterns = append(patterns, forms(secret)...)
	}
	return &Set{secrets: all, machine: newMachine(patterns)}, nil
}

// Check says of one secret why it cannot be in a Set, to go behind its name.
func Check(secret []byte) error {
	switch n := len(trimmed(secret)); {
	case n > 0 && n < MinBytes:
		return fmt.Errorf("has %d bytes: at least %d are needed to take it out of output", n, MinBytes)
	case n > MaxBytes:
		return fmt.Errorf("has %d bytes: at most %d can be taken out of output", n, MaxBytes)
	}
	return nil
}

func trimmed(secret []byte) string { return strings.TrimRight(string(secret), "\r\n") }

// forms are a secret, as it is and as a query has its spaces, and its base64.
func forms(secret string) []string {
	list := []string{secret, strings.ReplaceAll(secret, " ", "+")}
	if len(secret) >= minBase64Bytes {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				list = append(list, encoded(encoding, secret, before))
			}
		}
	}
	return list
}

// quoted is the inside of a JSON string.
func quoted(text string, escapeHTML bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(text) // a string always can be
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// encoded is what base64 makes of a secret behind so many bytes (modulo 3) of
// other text, without the characters that depend on what is around it.
func encoded(encoding *base64.Encoding, secret string, before int) string {
	whole := encoding.EncodeToString([]byte("\x00\x00"[:before] + secret))
	return whole[(before*8+5)/6 : (before+len(secret))*8/6]
}

// Bytes is b without the secrets. It shares b's memory if b holds no secret.
func (s *Set) Bytes(b []byte) []byte {
	found := spansOf(s, b)
	if len(found) == 0 {
		return b
	}
	var out []byte
	at := 0
	for _, f := range found {
		out = append(out, b[at:f.start]...)
		out = append(out, Replacement...)
		at = int(f.end)
	}
	return append(out, b[at:]...)
}

// String is text without the secrets.
func (s *Set) String(text string) string {
	if len(spansOf(s, text)) == 0 {
		return text
	}
	return string(s.Bytes([]byte(text)))
}

// span is a run of bytes to take out, by their offsets.
type span struct{ start, end int64 }

// spansOf finds the secrets in a whole text. Those that overlap or touch are
// one span: nothing is left of any.
func spansOf[T string | []byte](s *Set, text T) []span {
	if s == nil {
		return nil
	}
	scanner := newScanner(s.machine)
	return scanner.scan([]byte(text), 0, nil)
}

// join adds a span that ends behind all others. Each is merged at most once, so
// that many overlapping ones cost no more than few.
func join(spans []span, next span) []span {
	for len(spans) > 0 && spans[len(spans)-1].end >= next.start {
		next.start = min(next.start, spans[len(spans)-1].start)
		spans = spans[:len(spans)-1]
	}
	return append(spans, next)
}
