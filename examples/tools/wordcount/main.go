// Command wordcount is a tool that counts the words of files, of folders and
// of a text, and tells how far it is while it reads.
//
// A word is a run of letters, digits and marks, with apostrophes between them,
// in lower case. Binary files and symbolic links are left out.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugin"
)

const (
	defaultTop = 10
	maxTop     = 1000
)

func main() { plugin.Serve(newTool()) }

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{
		Name:        "wordcount",
		Title:       "Count words",
		Description: "Count lines, words and bytes of files, folders or a text, and list the most frequent words.",
		ReadOnly:    true,
		Idempotent:  true,
	}, wordcount)
}

// Arguments say what to count; all of it is added up.
type Arguments struct {
	Paths []string `json:"paths,omitempty" jsonschema:"files and folders to count"`
	Text  string   `json:"text,omitempty" jsonschema:"text to count"`
	Top   int      `json:"top,omitempty" jsonschema:"how many of the most frequent words to list, at most 1000; default 10"`
}

// Word is one of the most frequent words.
type Word struct {
	Word  string `json:"word"`
	Count int64  `json:"count"`
}

// Summary is what was counted. Errors are files that could not be read; they
// are logged. Approximate says that there were too many different words to
// keep, so that Top may lack some.
type Summary struct {
	Lines         int64  `json:"lines"`
	Words         int64  `json:"words"`
	Bytes         int64  `json:"bytes"`
	Top           []Word `json:"top"`
	Files         int64  `json:"files"`
	SkippedBinary int64  `json:"skipped_binary"`
	Errors        int64  `json:"errors"`
	Approximate   bool   `json:"approximate,omitempty"`
}

// wordcount shows what it has counted by then if ctx ends before all is read.
func wordcount(ctx context.Context, in Arguments, out *plugin.Output) (Summary, error) {
	if in.Top < 0 || in.Top > maxTop {
		return Summary{}, fmt.Errorf("top is %d: want 1 to %d, or leave it out for %d", in.Top, maxTop, defaultTop)
	}
	in.Top = cmp.Or(in.Top, defaultTop)
	if len(in.Paths) == 0 && in.Text == "" {
		return Summary{}, errors.New("nothing to count: give paths or text")
	}
	files, err := find(ctx, in.Paths)
	if err != nil {
		return Summary{}, err
	}
	c := newCounter()
	r := &reading{out: out, counter: c, total: files.bytes, errors: files.errors}
	r.log(files.failures...)
	if err := c.count(ctx, strings.NewReader(in.Text)); err == nil {
		r.all(ctx, files.paths)
	}
	summary := r.summary(in.Top)
	if ctx.Err() != nil {
		_ = out.JSON(summary)
		return Summary{}, context.Cause(ctx)
	}
	return summary, nil
}
