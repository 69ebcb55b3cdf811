package redact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// The simplest way to do it, to compare with: mark every byte of every
// occurrence of every form.
func naively(secrets []string, text string) string {
	marked := make([]bool, len(text))
	markDecoded(marked, secrets, text, percentEscape, func(s string) (string, error) { return url.PathUnescape(s) })
	markDecoded(marked, secrets, text, stringEscape, func(s string) (out string, err error) {
		if s == `\'` {
			return "'", nil
		}
		return out, json.Unmarshal([]byte(`"`+s+`"`), &out)
	})
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			for at := 0; form != "" && at+len(form) <= len(text); at++ {
				if text[at:at+len(form)] == form {
					for i := range len(form) {
						marked[at+i] = true
					}
				}
			}
		}
	}
	var out strings.Builder
	for i := range len(text) {
		switch {
		case !marked[i]:
			out.WriteByte(text[i])
		case i == 0 || !marked[i-1]:
			out.WriteString(Replacement)
		}
	}
	return out.String()
}

var (
	percentEscape = regexp.MustCompile(`\A%[0-9A-Fa-f]{2}`)
	stringEscape  = regexp.MustCompile(`\A\\(["\\/bfnrt']|u([0-9A-Ca-cEFef][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2})|u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})`)
)

// markDecoded marks what the escapes of one kind hide.
func markDecoded(marked []bool, secrets []string, text string, escape *regexp.Regexp, decode func(string) (string, error)) {
	var decoded []byte
	var from, to []int
	for at := 0; at < len(text); {
		n, stands := 1, text[at:at+1]
		if found := escape.FindString(text[at:]); found != "" {
			n = len(found)
			stands, _ = decode(found)
		}
		for i := range len(stands) {
			decoded, from, to = append(decoded, stands[i]), append(from, at), append(to, at+n)
		}
		at += n
	}
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			for at := 0; at+len(form) <= len(decoded); at++ {
				if string(decoded[at:at+len(form)]) == form {
					for i := from[at]; i < to[at+len(form)-1]; i++ {
						marked[i] = true
					}
				}
			}
		}
	}
}

// escaped has some of its letters escaped, and some only nearly.
func escaped(text string, random *rand.Rand) string {
	var out strings.Builder
	for _, letter := range text {
		switch random.IntN(12) {
		case 0:
			fmt.Fprintf(&out, "%%%02x", letter)
		case 1:
			fmt.Fprintf(&out, `\u%04x`, letter)
		case 2:
			out.WriteString([]string{"%", `\`, "%6", `\u00`}[random.IntN(4)])
		default:
			out.WriteRune(letter)
		}
	}
	return out.String()
}

// Of few letters, everything overlaps with everything.
func TestAgreesWithNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	hits := 0
	for range 20000 {
		var secrets []string
		for range 1 + random.IntN(4) {
			secrets = append(secrets, letters(4+random.IntN(6)))
		}
		s, text := set(t, secrets...), escaped(letters(random.IntN(60)), random)
		want := naively(secrets, text)
		if got := s.String(text); got != want {
			t.Fatalf("%q in %q: %q, want %q", secrets, text, got, want)
		}
		if got := streamed(s, text, random, 1+random.IntN(9)); got != want {
			t.Fatalf("%q in %q, in pieces: %q, want %q", secrets, text, got, want)
		}
		if want != text {
			hits++
		}
	}
	if hits < 5000 {
		t.Errorf("%d texts with secrets prove little", hits)
	}
}

// Whatever the text, the secrets and the pieces: what comes out is what the
// naive way gives, and no secret is in any part between the replacements.
func FuzzStream(f *testing.F) {
	f.Add("hunter22", "hunter2", "a hunter22 hunter2 b", uint64(1), uint8(3))
	f.Add("aaaa", "aaab", "aaaaaaaab", uint64(2), uint8(1))
	f.Add("ab+cd/ef", "x\u00f6<y", `ab%2bcd/ef ab+cd\/ef "x\u00F6\u003cy" %%61b+cd%2Fef`, uint64(4), uint8(1))
	f.Add("p\"w<\xff", "p\"w<é", `{"a":"p\"w\u003cé"}`, uint64(3), uint8(200))
	f.Fuzz(func(t *testing.T, one, two, text string, seed uint64, most uint8) {
		s, err := New([]byte(one), []byte(two))
		if err != nil {
			return
		}
		var secrets []string
		if s != nil {
			secrets = s.secrets
		}
		text += one + text + two // so that there is something to find
		want := naively(secrets, text)
		if got := s.String(text); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if got := streamed(s, text, rand.New(rand.NewPCG(seed, 0)), int(most)+1); got != want {
			t.Fatalf("in pieces: %q, want %q", got, want)
		}
		for _, part := range strings.Split(want, Replacement) {
			for _, secret := range secrets {
				if strings.Contains(part, secret) && !strings.Contains(secret, Replacement) {
					t.Fatalf("%q is left in %q", secret, want)
				}
			}
		}
	})
}
