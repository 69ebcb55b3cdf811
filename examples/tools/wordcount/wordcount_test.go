package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// transcript is what a tool has sent to a host that is not there.
type transcript struct {
	values     []string // JSON
	fractions  []float64
	logs       []string
	onProgress func()
}

func (t *transcript) output() *plugin.Output {
	return plugin.NewOutput(func(event *pluginv1.CallEvent) error {
		if raw := event.GetContent().GetJson(); raw != nil {
			t.values = append(t.values, string(raw))
		}
		if log := event.GetLog(); log != nil {
			t.logs = append(t.logs, log.GetMessage())
		}
		if progress := event.GetProgress(); progress != nil {
			t.fractions = append(t.fractions, progress.GetFraction())
			if t.onProgress != nil {
				t.onProgress()
			}
		}
		return nil
	})
}

// call runs the tool as a host would, with arguments and result as JSON.
func call(t *testing.T, ctx context.Context, in Arguments, sent *transcript) (Summary, error) {
	t.Helper()
	arguments, err := json.Marshal(in)
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

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestText(t *testing.T) {
	for text, want := range map[string]Summary{
		"":                      {Top: []Word{}},
		"one":                   {Words: 1, Top: []Word{{"one", 1}}},
		"The the, THE cat\na b": {Lines: 1, Words: 6, Top: []Word{{"the", 3}, {"a", 1}, {"b", 1}}},
		"don't don’t 'quoted'":  {Words: 3, Top: []Word{{"don't", 2}, {"quoted", 1}}},
		"Äpfel äPFEL x\xffy":    {Words: 4, Top: []Word{{"äpfel", 2}, {"x", 1}, {"y", 1}}},
		"\n\n ... \n":           {Lines: 3, Top: []Word{}},
		"a''b c'":               {Words: 3, Top: []Word{{"a", 1}, {"b", 1}, {"c", 1}}},
	} {
		want.Bytes = int64(len(text))
		for name, reader := range map[string]io.Reader{"whole": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text))} {
			c := newCounter()
			if err := c.count(t.Context(), reader); err != nil {
				t.Fatal(err)
			}
			if got := c.summary(3); !reflect.DeepEqual(got, want) {
				t.Errorf("%q %s: %+v, want %+v", text, name, got, want)
			}
		}
	}
}

func TestFilesFoldersAndText(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a"), "apple pear\n")
	write(t, filepath.Join(root, "b"), "apple")
	write(t, filepath.Join(root, "binary"), "apple\x00")
	if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	named := write(t, filepath.Join(t.TempDir(), "c"), "apple pear fig")
	var sent transcript
	got, err := call(t, t.Context(), Arguments{Paths: []string{root, named}, Text: "fig", Top: 2}, &sent)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Lines: 1, Words: 7, Bytes: 33, Top: []Word{{"apple", 3}, {"fig", 2}}, Files: 3, SkippedBinary: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(sent.fractions) == 0 || sent.fractions[0] <= 0 || sent.fractions[0] > 1 {
		t.Errorf("progress %v", sent.fractions)
	}
}

func TestBadArguments(t *testing.T) {
	for want, in := range map[string]Arguments{
		"nothing to count":                   {},
		"top is -1: want 1 to 1000":          {Text: "x", Top: -1},
		"cannot count: lstat /nonexistent: ": {Paths: []string{"/nonexistent"}},
	} {
		if _, err := call(t, t.Context(), in, new(transcript)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", in, err, want)
		}
	}
}

// What was counted by the end of the context is shown.
func TestEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(root, fmt.Sprintf("%03d", i)), strings.Repeat("word ", 1000))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("time is up")
	sent := transcript{onProgress: func() { cancel(cause) }}
	if _, err := call(t, ctx, Arguments{Paths: []string{root}, Text: "first"}, &sent); !errors.Is(err, cause) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if len(sent.values) != 1 || !strings.Contains(sent.values[0], `{"word":"first","count":1}`) {
		t.Errorf("shown %q, want the count so far", sent.values)
	}
}

// A cancel is heard while files are still looked for.
func TestACancelEndsTheSearch(t *testing.T) {
	root := t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(root, fmt.Sprintf("%03d", i)), "word")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	files, err := find(ctx, []string{root})
	if err != nil || len(files.paths) > 0 {
		t.Errorf("%d files were found after the end, error %v", len(files.paths), err)
	}
}

func TestUnreadableFile(t *testing.T) {
	var sent transcript
	r := &reading{out: sent.output(), counter: newCounter()}
	gone := make([]string, maxLogged+5)
	for i := range gone {
		gone[i] = "/nonexistent/file"
	}
	r.all(t.Context(), append(gone, write(t, filepath.Join(t.TempDir(), "f"), "word")))
	if got := r.summary(1); got.Errors != maxLogged+5 || got.Files != 1 || len(sent.logs) != maxLogged {
		t.Errorf("%+v, %d logged", got, len(sent.logs))
	}
}

func TestBounds(t *testing.T) {
	c := newCounter()
	if err := c.count(t.Context(), strings.NewReader(strings.Repeat("ä", 1000)+" short")); err != nil {
		t.Fatal(err)
	}
	if got := c.summary(9); got.Words != 2 || !got.Approximate || len(got.Top) != 1 {
		t.Errorf("%+v, want a long word that is counted but not kept", got)
	}
	for i := range maxDistinct + 10 {
		c.word = fmt.Append(c.word[:0], i)
		c.keep()
	}
	if len(c.distinct) != maxDistinct {
		t.Errorf("%d words kept, want %d", len(c.distinct), maxDistinct)
	}
}
