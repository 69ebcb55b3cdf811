package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// call runs the tool as a host would, with arguments and result as JSON.
func call(t *testing.T, ctx context.Context, query Query, sent *transcript) (Summary, error) {
	t.Helper()
	arguments, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := newTool().Run(ctx, arguments, sent.output())
	var summary Summary
	if err == nil {
		err = json.Unmarshal(raw, &summary)
	}
	return summary, err
}

func TestSearch(t *testing.T) {
	root := tree(t, map[string]string{
		"a.go":        "package a\n\n// TODO one\n",
		"b/c.go":      "TODO two\r\nnothing\nlast TODO",
		"b/d.txt":     "todo three\n",
		"binary":      "TODO\x00",
		".git/config": "TODO never\n",
		".gitignore":  "*.log\n",
		"x.log":       "TODO never\n",
		"empty":       "",
		"latin1.txt":  "TODO caf\xe9\n",
	})
	all := []string{"a.go:3: // TODO one", "b/c.go:1: TODO two", "b/c.go:3: last TODO"}
	latin1 := "latin1.txt:1: TODO caf\uFFFD"
	for _, test := range []struct {
		name    string
		query   Query
		want    []string
		summary Summary
	}{
		{"all", Query{Pattern: "TODO"}, append(all[:3:3], latin1), Summary{FilesSearched: 6, FilesMatched: 3, Matches: 4, SkippedBinary: 1}},
		{"ignoring case", Query{Pattern: "todo (two|three)$", IgnoreCase: true}, []string{all[1], "b/d.txt:1: todo three"}, Summary{FilesSearched: 6, FilesMatched: 2, Matches: 2, SkippedBinary: 1}},
		{"by name", Query{Pattern: "TODO", Include: "*.go"}, all, Summary{FilesSearched: 2, FilesMatched: 2, Matches: 3}},
		{"by path", Query{Pattern: "TODO", Include: "b/**"}, all[1:], Summary{FilesSearched: 2, FilesMatched: 1, Matches: 2}},
		{"none", Query{Pattern: "NOWHERE"}, []string{""}, Summary{FilesSearched: 6, SkippedBinary: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent transcript
			test.query.Path = root
			summary, err := call(t, t.Context(), test.query, &sent)
			if err != nil {
				t.Fatal(err)
			}
			if got := sent.lines(root); !slices.Equal(got, test.want) {
				t.Errorf("matches %q, want %q", got, test.want)
			}
			if summary != test.summary {
				t.Errorf("summary %+v, want %+v", summary, test.summary)
			}
		})
	}
}

func TestDefaultPathAndSingleFile(t *testing.T) {
	root := tree(t, map[string]string{"a.txt": "x\n", "skip.log": "x\n", ".gitignore": "*.log"})
	t.Chdir(root)
	for path, want := range map[string]string{"": "a.txt:1: x\n", "skip.log": "skip.log:1: x\n", "./": "a.txt:1: x\n"} {
		var sent transcript
		if _, err := call(t, t.Context(), Query{Pattern: "^x$", Path: path}, &sent); err != nil {
			t.Fatal(err)
		}
		if got := sent.text.String(); got != want {
			t.Errorf("path %q: %q, want %q", path, got, want)
		}
	}
}

func TestBadQueries(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, query := range map[string]Query{
		"pattern is empty":                          {},
		"missing closing )":                         {Pattern: "("},
		"include \"[\" is not a glob":               {Pattern: "x", Include: "["},
		"max_matches -1 is negative":                {Pattern: "x", MaxMatches: -1},
		"no such file":                              {Pattern: "x", Path: "/nonexistent"},
		"it is neither a file nor a folder":         {Pattern: "x", Path: fifo},
		"pattern is not a regular expression: erro": {Pattern: "a**"},
	} {
		if _, err := call(t, t.Context(), query, new(transcript)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", query, err, want)
		}
	}
}

func TestLongLines(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"cut between characters": {strings.Repeat("ü", 600), strings.Repeat("ü", 500)},
		"exactly the limit":      {strings.Repeat("u", 500), strings.Repeat("u", 500)},
		"longer than the buffer": {strings.Repeat("u", 2*maxLineBytes), strings.Repeat("u", 500)},
		"invalid":                {strings.Repeat("\xff", 2), "\uFFFD"},
	} {
		root := tree(t, map[string]string{"f": test.line + "\nsecond\n"})
		var sent transcript
		summary, err := call(t, t.Context(), Query{Pattern: ".", Path: root}, &sent)
		if err != nil {
			t.Fatal(err)
		}
		if summary.CutLines != int64(len(test.line)/(2*maxLineBytes)) {
			t.Errorf("%s: %d lines cut", name, summary.CutLines)
		}
		if want := []string{"f:1: " + test.want, "f:2: second"}; !slices.Equal(sent.lines(root), want) {
			t.Errorf("%s: got %q", name, sent.lines(root))
		}
		if !utf8.ValidString(sent.text.String()) {
			t.Errorf("%s: invalid UTF-8", name)
		}
	}
}

func TestOrderAndBatches(t *testing.T) {
	files, want := map[string]string{}, []string(nil)
	for i := range 300 {
		name := fmt.Sprintf("d%02d/%03d", i/50, i)
		files[name] = strings.Repeat("match\n", i)
		for line := range i {
			want = append(want, fmt.Sprintf("%s:%d: match", name, line+1))
		}
	}
	root := tree(t, files)
	var sent transcript
	summary, err := call(t, t.Context(), Query{Pattern: "match", Path: root}, &sent)
	if err != nil || summary.Matches != int64(len(want)) {
		t.Fatalf("%+v, %v; want %d matches", summary, err, len(want))
	}
	if !slices.Equal(sent.lines(root), want) {
		t.Error("the matches are not in the order of the walk")
	}
	for _, chunk := range sent.chunks {
		if len(chunk) > 2*flushBytes || !strings.HasSuffix(chunk, "\n") {
			t.Errorf("a batch of %d bytes, or one that splits a line", len(chunk))
		}
	}
}

func TestMaxMatches(t *testing.T) {
	root := tree(t, map[string]string{"a": "x\nx\n", "b": "x\nx\n", "c": "x\n"})
	for maximum, want := range map[int]Summary{
		3:  {FilesMatched: 2, Matches: 3, Truncated: true},
		10: {FilesMatched: 3, Matches: 5},
	} {
		var sent transcript
		got, err := call(t, t.Context(), Query{Pattern: "x", Path: root, MaxMatches: maximum}, &sent)
		got.FilesSearched = 0 // how far the workers were ahead is chance
		if err != nil || got != want || len(sent.lines(root)) != int(want.Matches) {
			t.Errorf("max_matches %d: %+v, %v, %q; want %+v", maximum, got, err, sent.lines(root), want)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	const lines = 200_000
	root := tree(t, map[string]string{"big": strings.Repeat("match\n", lines), "z": strings.Repeat("match\n", lines)})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("time is up")
	sent := transcript{onText: func() { cancel(cause) }}
	_, err := call(t, ctx, Query{Pattern: "match", Path: root}, &sent)
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if got := len(sent.lines(root)); got == 0 || got >= lines {
		t.Errorf("%d matches were streamed, want some but not all", got)
	}
}

func TestHostGone(t *testing.T) {
	root := tree(t, map[string]string{"big": strings.Repeat("match\n", 200_000)})
	gone := errors.New("gone")
	if _, err := search(t.Context(), Query{Pattern: "match", Path: root}, failing(gone)); !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}

func TestUnreadable(t *testing.T) {
	root := tree(t, map[string]string{"a": "x\n"})
	var sent transcript
	w := &walk{root: root}
	r := &run{expression: regexp.MustCompile("x"), walk: w, log: &complaints{out: sent.output()}}
	// Root may read everything, so the errors are of files that are gone.
	for range maxComplaints + 5 {
		r.scan(t.Context(), newScanner(r.expression), &file{path: filepath.Join(root, "gone"), matches: make(chan string)})
	}
	summary, err := r.do(t.Context(), sent.output())
	if err != nil || summary.Matches != 1 || summary.Errors != maxComplaints+5 {
		t.Errorf("%+v, %v", summary, err)
	}
	if len(sent.logs) != maxComplaints+1 {
		t.Errorf("%d lines logged, want %d", len(sent.logs), maxComplaints+1)
	}
}

func TestSymbolicLinks(t *testing.T) {
	root := tree(t, map[string]string{"d/a": "x\n"})
	for link, target := range map[string]string{"d/loop": "..", "d/b": "a"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	var sent transcript
	summary, err := call(t, t.Context(), Query{Pattern: "x", Path: filepath.Join(root, "d/loop")}, &sent)
	if err != nil || summary.Matches != 1 {
		t.Errorf("%+v, %v, %q: want the one file behind the link that was named", summary, err, sent.text.String())
	}
}
