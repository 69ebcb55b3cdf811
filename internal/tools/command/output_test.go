package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// parse writes output in pieces of at most size bytes.
func parse(format Format, maxBytes, size int, output string) (shown []string, parsed Parsed) {
	p := NewParser(format, maxBytes)
	add := func(content []Content) {
		for _, c := range content {
			if c.JSON != nil {
				shown = append(shown, "json:"+string(c.JSON))
			} else if n := len(shown); n > 0 && strings.HasPrefix(shown[n-1], "text:") {
				shown[n-1] += c.Text
			} else {
				shown = append(shown, "text:"+c.Text)
			}
		}
	}
	for len(output) > 0 {
		n := min(size, len(output))
		add(p.Write([]byte(output[:n])))
		output = output[n:]
	}
	parsed = p.Close()
	add(parsed.Content)
	return shown, parsed
}

func TestParser(t *testing.T) {
	for name, test := range map[string]struct {
		format     Format
		output     string
		shown      []string
		structured string
		bad        int64
		err        string
	}{
		"text":             {FormatText, "a\né\n", []string{"text:a\né\n"}, "", 0, ""},
		"text by default":  {"", "{}", []string{"text:{}"}, "", 0, ""},
		"no text":          {FormatText, "", nil, "", 0, ""},
		"no UTF-8":         {FormatText, "a\xff\xfeb\xe2\x82", []string{"text:a\uFFFD\uFFFDb\uFFFD\uFFFD"}, "", 0, ""},
		"json":             {FormatJSON, " {\"a\": [1e3, \"é\"]}\n", nil, "{\"a\": [1e3, \"é\"]}", 0, ""},
		"json in latin 1":  {FormatJSON, "{\"é\":\n \"\xff\"}", []string{"text:{\"é\":\n \"\uFFFD\"}"}, "", 0, "line 2, column 3: the byte 0xff is not UTF-8"},
		"a real U+FFFD":    {FormatJSON, "\"\uFFFD\"", nil, "\"\uFFFD\"", 0, ""},
		"line in latin 1":  {FormatNDJSON, "\"\xe9\"\n\"é\"\n", []string{"text:\"\uFFFD\"\n", "json:\"é\""}, "", 1, ""},
		"json null":        {FormatJSON, "null", nil, "null", 0, ""},
		"no json":          {FormatJSON, "", nil, "", 0, "empty"},
		"json cut off":     {FormatJSON, "{\"a\":\n [1", []string{"text:{\"a\":\n [1"}, "", 0, "line 2, column 3"},
		"bad json":         {FormatJSON, "{\"a\":\n tru}", []string{"text:{\"a\":\n tru}"}, "", 0, "line 2, column 5"},
		"two jsons":        {FormatJSON, "1\n2", []string{"text:1\n2"}, "", 0, "line 2, column 1"},
		"long json":        {FormatJSON, "[" + strings.Repeat("1,", 50) + "1]", []string{"text:[" + strings.Repeat("1,", 50) + "1]"}, "", 0, "more than 40 bytes"},
		"lines":            {FormatNDJSON, "{\"a\":1}\n\n 2 \r\n\"x\"", []string{`json:{"a":1}`, "json:2", `json:"x"`}, "", 0, ""},
		"bad lines":        {FormatNDJSON, "1\nwarning: x\n{\n2\n", []string{"json:1", "text:warning: x\n{\n", "json:2"}, "", 2, ""},
		"a cut line":       {FormatNDJSON, "1\n{\"a\":", []string{"json:1", `text:{"a":`}, "", 1, ""},
		"a long line":      {FormatNDJSON, "1\n" + strings.Repeat("é", 30) + "\n2\n", []string{"json:1", "text:" + strings.Repeat("é", 30) + "\n", "json:2"}, "", 1, ""},
		"a long last line": {FormatNDJSON, strings.Repeat("1", 41), []string{"text:" + strings.Repeat("1", 41)}, "", 1, ""},
		"a full line":      {FormatNDJSON, strings.Repeat("1", 40) + "\n", []string{"json:" + strings.Repeat("1", 40)}, "", 0, ""},
		"a blank end":      {FormatNDJSON, "1\n \n  ", []string{"json:1"}, "", 0, ""},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			shown, parsed := parse(test.format, 40, size, test.output)
			wrong := parsed.Err == nil && test.err != "" || parsed.Err != nil && (test.err == "" || !strings.Contains(parsed.Err.Error(), test.err))
			if !slices.Equal(shown, test.shown) || string(parsed.Structured) != test.structured || parsed.BadLines+parsed.LongLines != test.bad || wrong {
				t.Errorf("%s by %d: %q, %q, %d bad, %v", name, size, shown, parsed.Structured, parsed.BadLines, parsed.Err)
			}
		}
	}
}

// Lines that are too long are told apart from those that are not JSON, and no
// output at all from one that is none.
func TestParserSaysWhy(t *testing.T) {
	if _, parsed := parse(FormatNDJSON, 10, 3, "x\n\"0123456789\"\n1\ny\n"); parsed.BadLines != 2 || parsed.LongLines != 1 {
		t.Errorf("%d bad, %d long", parsed.BadLines, parsed.LongLines)
	}
	for output, empty := range map[string]bool{"": true, " \n": true, "x": false, "{": false, "\xff": false} {
		if _, parsed := parse(FormatJSON, 10, 3, output); parsed.Err == nil || errors.Is(parsed.Err, io.EOF) != empty {
			t.Errorf("%q: %v", output, parsed.Err)
		}
	}
	if _, parsed := parse(FormatJSON, 10, 3, "[0,1,2,3,4,5]"); parsed.Err == nil || !strings.Contains(parsed.Err.Error(), "format: ndjson") {
		t.Errorf("%v", parsed.Err)
	}
}

// What is complete is shown at once: a kill in the next instant loses none.
func TestParserShowsAtOnce(t *testing.T) {
	p := NewParser(FormatNDJSON, 1000)
	if got := p.Write([]byte("{\"a\":1}\n{\"b\"")); len(got) != 1 || string(got[0].JSON) != `{"a":1}` {
		t.Errorf("%q", got)
	}
	text := NewParser(FormatText, 1000)
	if got := text.Write([]byte("no newline\xc3")); len(got) != 1 || got[0].Text != "no newline" {
		t.Errorf("%q", got)
	}
}

// What was given out does not change when more comes.
func TestParserKeepsNothingOfTheWriters(t *testing.T) {
	p := NewParser(FormatNDJSON, 1000)
	buffer := []byte("[1]\n")
	first := p.Write(buffer)
	copy(buffer, "[2]\n")
	p.Write(buffer)
	if string(first[0].JSON) != "[1]" {
		t.Errorf("%s", first[0].JSON)
	}
}

// Whatever is written in whatever pieces: nothing is lost, what is shown is
// valid, and what is held back is bounded.
func FuzzParser(f *testing.F) {
	f.Add("{\"a\":1}\nxx\n\xff\n", uint8(2), uint8(20), uint64(1))
	f.Add(strings.Repeat("0", 300), uint8(2), uint8(20), uint64(1))
	f.Add("[1,\"é\"]", uint8(1), uint8(20), uint64(1))
	f.Fuzz(func(t *testing.T, output string, kind, limit uint8, seed uint64) {
		format := []Format{FormatText, FormatJSON, FormatNDJSON}[kind%3]
		random := rand.New(rand.NewPCG(seed, 0))
		p := NewParser(format, int(limit))
		var text strings.Builder
		values := 0
		take := func(content []Content) {
			for _, c := range content {
				if !utf8.ValidString(c.Text) || !utf8.Valid(c.JSON) || (c.JSON == nil) == (c.Text == "") || c.JSON != nil && !json.Valid(c.JSON) {
					t.Fatalf("content %q", c)
				}
				if c.JSON != nil {
					values++
				}
				text.WriteString(c.Text)
				text.Write(c.JSON)
			}
		}
		for rest := output; rest != ""; {
			n := 1 + random.IntN(len(rest))
			take(p.Write([]byte(rest[:n])))
			if rest = rest[n:]; len(p.held) > max(int(limit), 1)+utf8.UTFMax {
				t.Fatalf("%d bytes are held, limit %d", len(p.held), limit)
			}
		}
		parsed := p.Close()
		take(parsed.Content)
		whole, parsedWhole := parse(format, int(limit), max(1, len(output)), output)
		if parsed.BadLines != parsedWhole.BadLines || parsed.LongLines != parsedWhole.LongLines || fmt.Sprint(parsed.Err) != fmt.Sprint(parsedWhole.Err) || string(parsed.Structured) != string(parsedWhole.Structured) {
			t.Fatalf("%+v, at once %+v", parsed, parsedWhole)
		}
		want := printable([]byte(output))
		got := text.String() + string(parsed.Structured)
		if format == FormatText && got != want || format != FormatText && bare(got) != bare(want) {
			t.Fatalf("%q of %q; at once %q", got, want, whole)
		}
	})
}

// bare is what must be left of JSON and lines whose surrounding space is not
// kept.
func bare(s string) string { return strings.Join(strings.Fields(s), "") }
