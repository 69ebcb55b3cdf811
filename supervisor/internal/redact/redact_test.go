package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func set(t testing.TB, secrets ...string) *Set {
	t.Helper()
	var raw [][]byte
	for _, secret := range secrets {
		raw = append(raw, []byte(secret))
	}
	s, err := New(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// streamed sends a text through a stream in pieces of random size.
func streamed(s *Set, text string, random *rand.Rand, most int) string {
	var out strings.Builder
	stream := s.NewStream()
	longest := 0
	if s != nil {
		for _, node := range s.machine.nodes {
			longest = max(longest, 12*int(node.depth)) // as a pair of surrogates
		}
	}
	for rest := []byte(text); len(rest) > 0; {
		n := min(len(rest), 1+random.IntN(most))
		piece := bytes.Clone(rest[:n])
		out.Write(stream.Write(piece))
		clear(piece) // what is held back is not memory of the writer's
		if held := len(stream.buf) - stream.from; held > 0 && held >= longest {
			return fmt.Sprintf("%d bytes are held back, the longest has %d", held, longest)
		}
		rest = rest[n:]
	}
	out.Write(stream.Close())
	return out.String()
}

func TestRedact(t *testing.T) {
	for name, test := range map[string]struct{ secrets, in, want string }{
		"nothing":                    {"hunter22", "nothing here", "nothing here"},
		"no text":                    {"hunter22", "", ""},
		"alone":                      {"hunter22", "hunter22", "[REDACTED]"},
		"inside":                     {"hunter22", "pw=hunter22;", "pw=[REDACTED];"},
		"twice":                      {"hunter22", "hunter22 hunter22", "[REDACTED] [REDACTED]"},
		"touching":                   {"hunter22", "hunter22hunter22!", "[REDACTED]!"},
		"nearly":                     {"hunter22", "hunter2hunter2", "hunter2hunter2"},
		"after its own beginning":    {"aaab", "aaaab", "a[REDACTED]"},
		"the longest":                {"abcd abcdef", "abcdefg abcdeg", "[REDACTED]g [REDACTED]eg"},
		"inside another":             {"xabcdy abcd", "xabcdz xabcdy", "x[REDACTED]z [REDACTED]"},
		"overlapping":                {"abcd cdef", "abcdef", "[REDACTED]"},
		"overlapping itself":         {"abab", "ababab", "[REDACTED]"},
		"found late inside a longer": {"bcde abcdefgh", "abcdefgx", "a[REDACTED]fgx"},
		"bytes":                      {"\xff\x00\xfe\x01", "a\xff\x00\xfe\x01b", "a[REDACTED]b"},
		"a line end":                 {"hunter22\r\n", "hunter22\n", "[REDACTED]\n"},
		"the replacement":            {"REDACTED", "REDACTED", "[REDACTED]"},
	} {
		s := set(t, strings.Split(test.secrets, " ")...)
		if got := s.String(test.in); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		for most := range 9 {
			random := rand.New(rand.NewPCG(uint64(most), 1))
			if got := streamed(s, test.in, random, most+1); got != test.want {
				t.Errorf("%s, by %d: %q, want %q", name, most+1, got, test.want)
			}
		}
	}
}

func TestForms(t *testing.T) {
	secret := "p<ä&\"s\\ß\t🔑 w/+?"
	s := set(t, secret)
	quote := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	plain := func() string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(map[string]string{"key": "a " + secret + " z"})
		return b.String()
	}
	for name, text := range map[string]string{
		"itself": "a " + secret + " z", "JSON": quote("a " + secret + " z"), "JSON without HTML escapes": plain(),
		// json.dumps of Python.
		"ASCII JSON": `"a p<\u00e4&\"s\\\u00df\t\ud83d\udd11 w/+? z"`,
		"a query":    "https://x/?a=" + url.QueryEscape("a "+secret+" z") + "&b", "a path": "https://x/" + url.PathEscape("a "+secret+" z"),
	} {
		got := s.String(text)
		if !strings.Contains(got, Replacement) || len(got) != len(text)-longestLost(text, got)+len(Replacement) || strings.Contains(got, "w") {
			t.Errorf("%s: %q of %q", name, got, text)
		}
	}
}

// longestLost is how much of text got lacks.
func longestLost(text, got string) int {
	before, after, _ := strings.Cut(got, Replacement)
	if !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
		return -1
	}
	return len(text) - len(before) - len(after)
}

// Whatever stands around a secret in base64, at most 4 bits of it stay at
// either end.
func TestBase64(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		secret, before, after := randomBytes(random, 8+random.IntN(20)), randomBytes(random, random.IntN(20)), randomBytes(random, random.IntN(20))
		s := set(t, "x"+secret)
		secret = "x" + secret
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(before + secret + after))
			got := s.String(text)
			gone := longestLost(text, got)
			if gone < (len(secret)*8-8+5)/6-1 || gone > (len(secret)*8+5)/6 {
				t.Fatalf("%q in %q: %q has lost %d characters of %q", secret, before+secret+after, got, gone, text)
			}
		}
	}
	if got := set(t, "short").String(base64.StdEncoding.EncodeToString([]byte("short"))); got != "c2hvcnQ=" {
		t.Errorf("%q: chance may look like so short a secret's base64", got)
	}
}

// randomBytes end in no line end.
func randomBytes(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(14 + random.IntN(242))
	}
	return string(b)
}

func TestNewRefuses(t *testing.T) {
	for name, test := range map[string]struct{ secret, want string }{
		"short":           {"abc", "secret 2 of 2 has 3 bytes"},
		"short of a line": {"abc\n", "3 bytes"},
		"long":            {strings.Repeat("x", MaxBytes+1), "at most 16384"},
	} {
		_, err := New([]byte("good enough"), []byte(test.secret))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many [][]byte
	for i := range MaxTotalBytes/MaxBytes + 1 {
		many = append(many, bytes.Repeat([]byte{byte('a' + i)}, MaxBytes))
	}
	if _, err := New(many...); err == nil || !strings.Contains(err.Error(), "in all") {
		t.Errorf("too much: %v", err)
	}
}

func TestEmpty(t *testing.T) {
	for _, s := range []*Set{nil, set(t), set(t, "", "\n")} {
		text := []byte("text")
		if got := s.Bytes(text); &got[0] != &text[0] {
			t.Errorf("%q", got)
		}
		stream := s.NewStream()
		if got := stream.Write(text); string(got) != "text" || len(stream.Close()) > 0 {
			t.Errorf("%q", got)
		}
		if got := s.String("text") + string(s.JSON([]byte(`"text"`))); got != `text"text"` {
			t.Errorf("%q", got)
		}
	}
}

func TestWith(t *testing.T) {
	first := set(t, "first secret")
	both, err := first.With([]byte("second secret"))
	if err != nil {
		t.Fatal(err)
	}
	text := "first secret, second secret"
	if got := first.String(text); got != "[REDACTED], second secret" {
		t.Errorf("the first has changed: %q", got)
	}
	if got := both.String(text); got != "[REDACTED], [REDACTED]" {
		t.Errorf("%q", got)
	}
}

// A secret that becomes known while a stream runs is caught from then on, also
// where the beginning of it, or of another, is held back already.
func TestUse(t *testing.T) {
	first := set(t, "abcdefgh")
	both, err := first.With([]byte("cdefxy"), []byte("later"))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"abcdef|xy.":            "ab[REDACTED].",
		"abcdef|gh.":            "[REDACTED].",
		"later abcd|later":      "later abcd[REDACTED]",
		"abcdefghabcdef|ghxy":   "[REDACTED]xy",
		"abcdefghabcdef|xylate": "[REDACTED]ab[REDACTED]late",
	} {
		before, after, _ := strings.Cut(in, "|")
		stream := first.NewStream()
		got := string(stream.Write([]byte(before)))
		stream.Use(both)
		got += string(stream.Write([]byte(after)))
		got += string(stream.Close())
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// What was found before the change stays found, whatever the order of the ends.
func TestUseKeepsWhatWasFound(t *testing.T) {
	stream := set(t, "xxabcdz", "abcd").NewStream()
	got := string(stream.Write([]byte("xxabcd")))
	stream.Use(set(t, "xxab"))
	got += string(stream.Write([]byte(".")))
	if got += string(stream.Close()); got != "[REDACTED]." {
		t.Errorf("%q", got)
	}
}

// What cannot be part of a secret any more is shown at once.
func TestStreamHoldsBackLittle(t *testing.T) {
	stream := set(t, "hunter22", "hunter-and-more").NewStream()
	for _, test := range []struct{ write, want string }{
		{"text ", "text "},
		{"hunt", ""},
		{"ing", "hunting"},
		{"x hunter2", "x "},
		{"2", "[REDACTED]"},
		{" y", " y"},
		{"hunter22hunter2", "[REDACTED]"},
		{"2", ""},
		{"hunter22", ""},
		{".", "."},
		{"hunter-an", ""},
		{"hunter", "hunter-an"},
	} {
		if got := string(stream.Write([]byte(test.write))); got != test.want {
			t.Errorf("%q: %q, want %q", test.write, got, test.want)
		}
	}
	if got := string(stream.Close()); got != "hunter" {
		t.Errorf("at the end: %q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := set(t, "hunter22", "correct horse")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			for range 200 {
				if got := streamed(s, "a hunter22 b correct horse c", random, 5); got != "a [REDACTED] b [REDACTED] c" {
					t.Errorf("%q", got)
					return
				}
			}
		})
	}
	group.Wait()
}
