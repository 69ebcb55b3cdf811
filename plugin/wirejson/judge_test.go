package wirejson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func nested(open, end string, n int) string {
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
}

func TestClean(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"\ud800"}`:          `{"a":"\ufffd"}`,
		`{"\udfff":1}`:            `{"\ufffd":1}`,
		`"\ud83d\ude00"`:          `"\ud83d\ude00"`,
		`"\ude00\ud83d"`:          `"\ufffd\ufffd"`,
		`"\ud83d\ud83d\ude00"`:    `"\ufffd\ud83d\ude00"`,
		`"\ud83d\n\ude00"`:        `"\ufffd\n\ufffd"`,
		`"\\ud800"`:               `"\\ud800"`,
		`"\\\ud800"`:              `"\\\ufffd"`,
		`"\uD800x"`:               `"\ufffdx"`,
		` [1, -0, 0.5e-3] `:       ` [1, -0, 0.5e-3] `,
		`1e308`:                   `1e308`,
		`-1.7976931348623157e308`: `-1.7976931348623157e308`,
		`1e-400`:                  `1e-400`,
		`0e99999999999`:           `0e99999999999`,
		"\"\u2028\\u0000\"":       "\"\u2028\\u0000\"",
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`: `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`,
		nested("[", "]", MaxDepth):                  nested("[", "]", MaxDepth),
		nested(`{"a":`, "}", MaxDepth):              nested(`{"a":`, "}", MaxDepth),
		strings.Repeat("9", 308):                    strings.Repeat("9", 308),
		"0." + strings.Repeat("9", 998):             "0." + strings.Repeat("9", 998),
	} {
		got, err := Clean([]byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("%.60s: %.60s, %v", raw, got, err)
		}
	}
}

func TestUnfit(t *testing.T) {
	for raw, want := range map[string]string{
		nested("[", "]", MaxDepth+1):        "deeper than 128",
		nested("[", "]", 9999):              "deeper than 128",
		nested(`{"a":[`, "]}", 1_000_000):   "deeper than 128",
		`1e309`:                             "beyond what a float64 holds",
		`[-1e400]`:                          "beyond what a float64 holds",
		`1e99999999999999999999`:            "beyond what a float64 holds",
		strings.Repeat("9", 400):            "beyond what a float64 holds",
		strings.Repeat("9", 1001):           "of 1001 characters",
		"0." + strings.Repeat("9", 999):     "of 1001 characters",
		`{"a":1,"a":2}`:                     `"a" is there twice`,
		`{"a":1,"\u0061":2}`:                `"a" is there twice`,
		`{"\ud800":1,"\udfff":2}`:           "is there twice",
		`{"\ud800":1,"` + "\ufffd" + `":2}`: "is there twice",
		`{"":1,"":2}`:                       "is there twice",
		`[{"x":{"b":1,"a":2,"b":3}}]`:       `"b" is there twice`,
	} {
		got, err := Clean([]byte(raw))
		if !IsUnfit(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %.60s, %v, want %q", raw, got, err, want)
		}
	}
}

func TestNoJSON(t *testing.T) {
	for _, raw := range []string{
		"", " ", "{", "[", `"`, "{]", "[}", "[1,]", `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, "[,1]", "[1 2]", "1 2", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1",
		"tru", "nul", "nullx", `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"", "\xef\xbb\xbf{}", "\"\xff\"", "{}{}", `{"a":1}}`, "[1]]", "\u2028 1", "[" + strings.Repeat("[", 20000),
		strings.Repeat("[", 20000) + strings.Repeat("]", 19999),
	} {
		if _, err := Clean([]byte(raw)); err == nil || IsUnfit(err) {
			t.Errorf("%.60q: %v", raw, err)
		}
	}
}

func TestManyKeys(t *testing.T) {
	var raw strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&raw, `,"%x":0`, i)
	}
	text := "{" + raw.String()[1:] + "}"
	if err := Check([]byte(text)); err != nil {
		t.Error(err)
	}
	if err := Check([]byte(text[:len(text)-1] + `,"1a":0}`)); !IsUnfit(err) {
		t.Error(err)
	}
}

func TestValues(t *testing.T) {
	if n, err := CheckObject([]byte(`{"a":[1,2,3]}`), 5); err != nil || n != 5 {
		t.Error(err)
	}
	if _, err := CheckMessage([]byte(`[{"a":1,"a":2},3,4,[5]]`), 5); !IsTooMany(err) {
		t.Error(err)
	}
}

// agree compares with encoding/json, which takes the same JSON, but less deep.
func agree(t *testing.T, raw []byte) {
	t.Helper()
	clean, err := Clean(raw)
	valid := utf8.Valid(raw) && (json.Valid(raw) || bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > 9000)
	if known := err == nil || IsUnfit(err); known != valid {
		t.Fatalf("%.200q: %v, encoding/json says %v", raw, err, valid)
	}
	if err != nil {
		return
	}
	var before, after any
	if json.Unmarshal(raw, &before) != nil || json.Unmarshal(clean, &after) != nil {
		t.Fatalf("%.200q passes, and cannot be decoded", raw)
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatalf("%.200q became %.200q", raw, clean)
	}
	if again, err := Clean(clean); err != nil || !bytes.Equal(again, clean) {
		t.Fatalf("%.200q is not clean: %v", clean, err)
	}
}

func TestAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"{", "}", "[", "]", ",", ":", `"a"`, `"\ud800"`, `"\u0061"`, "1", "-0", "1e9", "1e999", "true", "null", " ", "\n", `"`, `\`, "x", "\xff"}
	for range 200_000 {
		var raw []byte
		for range random.IntN(12) {
			raw = append(raw, pieces[random.IntN(len(pieces))]...)
		}
		agree(t, raw)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"\u0061":2}`, `"\ud800\udc00\ud800"`, `[1e999,-0.1E+2]`, "["} {
		f.Add([]byte(seed))
	}
	f.Fuzz(agree)
}

func BenchmarkClean(b *testing.B) {
	raw := []byte("[" + strings.Repeat(`{"name":"value","n":12.5,"list":[1,2,3]},`, 100_000) + "1]")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(raw); err != nil {
			b.Fatal(err)
		}
	}
}
