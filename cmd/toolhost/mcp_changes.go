package main

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/terminal"
)

// changes are the lines that change. Neither those around them are shown nor what stays
// of them: other servers' entries may hold secrets.
func changes(path string, before, after []byte) string {
	var out strings.Builder
	print := func(sign, text string) {
		for line := range strings.Lines(text) {
			out.WriteString(sign + terminal.OneLine(strings.TrimRight(line, "\r\n")) + "\n")
		}
	}
	was, is := "", "" // lines of a block, without their signs
	flush := func() {
		was, is = elided(was, is, filepath.Ext(path) == ".toml")
		print("-", was)
		print("+", is)
		was, is = "", ""
	}
	header, lines := 3, strings.Lines(string(diff.Diff(path, before, path, after)))
	for line := range lines {
		switch header--; {
		case header == 2: // the command line of diff
		case header >= 0 || line[0] == '@':
			flush()
			print("", line)
		case line[0] == '-':
			if is != "" {
				flush()
			}
			was += line[1:]
		case line[0] == '+':
			is += line[1:]
		case line[0] == ' ':
			flush()
		}
	}
	flush()
	return out.String()
}

// elided leaves out how both begin and how both end. Where something else than space
// goes, it is the entry's own that is changed, and is shown with its key.
func elided(was, is string, toml bool) (string, string) {
	begin := same(was, is)
	if a, b, ok := comma(was, is, begin); ok { // what stands behind it is the neighbour's, too
		x, y := elided(was[len(a):], is[len(b):], toml)
		return excerpt(a, begin, begin, false) + x, excerpt(b, begin, begin+1, false) + y
	}
	for begin > 0 && (!startsRune(was, begin) || !startsRune(is, begin)) {
		begin--
	}
	end := 0
	for end < min(len(was), len(is))-begin && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	for end > 0 && !startsRune(was, len(was)-end) {
		end--
	}
	own := strings.TrimSpace(was[begin:len(was)-end]) != ""
	if own && toml { // a line has one key there
		return was, is
	}
	return excerpt(was, begin, len(was)-end, own), excerpt(is, begin, len(is)-end, own)
}

// same is how many bytes both begin with.
func same(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// comma gives the first lines of both if they differ in a comma that one has at this place.
func comma(was, is string, at int) (a, b string, ok bool) {
	a, b = was[:strings.IndexByte(was, '\n')+1], is[:strings.IndexByte(is, '\n')+1]
	return a, b, at < len(b) && b[at] == ',' && a == b[:at]+b[at+1:]
}

func startsRune(s string, at int) bool { return at == len(s) || utf8.RuneStart(s[at]) }

var keyBefore = lazy.Regexp(`"[\w-]*"\s*:\s*$`)

// excerpt is text[begin:end] with what is left of its first and its last line, or with
// an ellipsis for that. An own JSON string is whole, and has its key.
func excerpt(text string, begin, end int, own bool) string {
	first := strings.LastIndexByte(text[:begin], '\n') + 1
	last := strings.LastIndexByte(text[:end], '\n') + 1
	behind := len(text)
	if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
		behind = end + n
	}
	if at := opened(text[first:begin]); own && at >= 0 {
		begin = first + at
	}
	if key := keyBefore().FindStringIndex(text[first:begin]); own && key != nil {
		begin = first + key[0]
	}
	if own && opened(text[last:end]) >= 0 {
		for end < behind && opened(text[last:end]) >= 0 {
			end++
		}
	}
	head, tail := text[first:begin], text[end:behind]
	if hides(head) {
		head = "…"
	}
	if last == end && (end > begin || end == len(text)) { // it ends with a whole line
		return head + text[begin:end]
	}
	if hides(tail) {
		tail = "…"
	}
	if begin == end && head == "…" {
		return "…\n"
	}
	return head + text[begin:end] + tail + "\n"
}

// opened is where the JSON string begins that is open at the end of a line's part, or -1.
func opened(part string) int {
	at := -1
	for n := 0; n < len(part); n++ {
		switch {
		case part[n] == '\\':
			n++
		case part[n] == '"' && at < 0:
			at = n
		case part[n] == '"':
			at = -1
		}
	}
	return at
}

// hides says whether a part of a line is more than punctuation.
func hides(part string) bool { return strings.Trim(part, " \t\r{}[],:") != "" }
