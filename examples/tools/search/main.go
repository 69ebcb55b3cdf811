// Command search is a tool that looks for a regular expression in a tree of
// files and streams the matching lines as it finds them, so that a call which
// is cut short keeps what was found by then.
//
// Matches are lines `path:line: text`, in the order of the walk. Files that
// .gitignore excludes, .git itself, binary files and symbolic links are left
// out.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/plugin"
)

func main() { plugin.Serve(newTool()) }

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{
		Name:        "search",
		Title:       "Search files",
		Description: "Search the files below a path for lines that match a regular expression. Honours .gitignore.",
		ReadOnly:    true,
		Idempotent:  true,
	}, search)
}

// Query is what to look for.
type Query struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression in Go's syntax (RE2), matched against each line"`
	Path       string `json:"path,omitempty" jsonschema:"file or folder to search; default ."`
	Include    string `json:"include,omitempty" jsonschema:"glob of the files to search, such as *.go or src/**/*.c"`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"stop after so many matching lines; default none"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"match letters in either case"`
}

// Summary counts what a search has done. Truncated says that it ended at
// max_matches; the files after that were not all searched.
type Summary struct {
	FilesSearched int64 `json:"files_searched"`
	FilesMatched  int64 `json:"files_matched"`
	Matches       int64 `json:"matches"`
	SkippedBinary int64 `json:"skipped_binary"`
	CutLines      int64 `json:"cut_lines,omitempty" jsonschema:"lines of more than 256 KiB; only their beginning was searched"`
	Errors        int64 `json:"errors"`
	Truncated     bool  `json:"truncated,omitempty"`
}

func search(ctx context.Context, query Query, out *plugin.Output) (Summary, error) {
	expression, err := query.compile()
	if err != nil {
		return Summary{}, err
	}
	query.Path = cmp.Or(query.Path, ".")
	w, err := newWalk(query.Path, query.Include)
	if err != nil {
		return Summary{}, err
	}
	s := &run{expression: expression, walk: w, maxMatches: int64(query.MaxMatches), log: &complaints{out: out}}
	return s.do(ctx, out)
}

// compile checks the query, so that a mistake is told before any work.
func (q Query) compile() (*regexp.Regexp, error) {
	if q.Pattern == "" {
		return nil, errors.New("pattern is empty: give a regular expression")
	}
	if q.MaxMatches < 0 {
		return nil, fmt.Errorf("max_matches %d is negative: leave it out for no limit", q.MaxMatches)
	}
	if !doublestar.ValidatePattern(q.Include) {
		return nil, fmt.Errorf("include %q is not a glob: want something like *.go or src/**/*.c", q.Include)
	}
	expression, err := regexp.Compile(q.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern is not a regular expression: %w", err)
	}
	if q.IgnoreCase {
		return regexp.Compile("(?i)" + q.Pattern)
	}
	return expression, nil
}
