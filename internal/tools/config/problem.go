package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/internal/text"
)

// Position is a place in a file. Line and Column count from 1, Column in
// characters; both are 0 for a variable, a flag, or a file as a whole.
type Position struct {
	File         string
	Line, Column int
}

// String gives file and line, as results name the place of a setting.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Problem is one thing that is wrong, with what to do about it.
type Problem struct {
	Position
	// Path is the key: "tools.search.timeout"; empty for a file as a whole.
	Path string
	// Message is one line that quotes the offending text and names the remedy.
	Message string

	excerpt string // the source line
}

// String is one line: file:line:column: path: message.
func (p Problem) String() string {
	var parts []string
	if p.File != "" {
		place := oneLine(p.File)
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", place, p.Line, p.Column)
		}
		parts = append(parts, place)
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Long is String with the source line below it and a caret under the place.
func (p Problem) Long() string {
	if p.Line == 0 || p.Column < 1 {
		return p.String()
	}
	line, column := excerpt(p.excerpt, p.Column)
	return fmt.Sprintf("%s\n%5d | %s\n      | %s^", p.String(), p.Line, line, strings.Repeat(" ", column-1))
}

// maxExcerptRunes bounds the part of a source line that is shown.
const maxExcerptRunes = 120

// excerpt cuts a line to what is around the column, and makes it printable
// without moving anything.
func excerpt(line string, column int) (string, int) {
	runes := []rune(strings.TrimRight(line, "\r\n"))
	column = min(column, len(runes)+1)
	if from := column - maxExcerptRunes/2; len(runes) > maxExcerptRunes && from > 0 {
		runes, column = runes[from:], column-from
	}
	runes = runes[:min(len(runes), maxExcerptRunes)]
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	return string(runes), column
}

// Problems are all that Load found, in the order of files and lines. They are
// one error.
type Problems []Problem

// Error is one line for each.
func (p Problems) Error() string { return p.join(Problem.String) }

// Err is p as an error; nil without problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Long shows the source lines, too.
func (p Problems) Long() string { return p.join(Problem.Long) }

func (p Problems) join(show func(Problem) string) string {
	var lines []string
	for _, problem := range p {
		lines = append(lines, show(problem))
	}
	return strings.Join(lines, "\n")
}

// Concern says whether the settings below these root keys may be other than they were
// read: a problem is with one of them, with a key that may be one mistyped, or with a
// file as a whole.
func (p Problems) Concern(keys ...string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool {
		root, _, _ := strings.Cut(one.Path, ".")
		return find(rootKeys, root) == nil || root == includeKey || slices.Contains(keys, root)
	})
}

// maxProblems bounds a report; nobody mends more at once.
const maxProblems = 100

// report collects problems of several files.
type report struct {
	files []string // in the order in which they were read
	list  []Problem
	more  int
}

func (r *report) add(p Problem) {
	p.Message = oneLine(p.Message)
	if slices.ContainsFunc(r.list, func(q Problem) bool { return q.Position == p.Position && q.Message == p.Message }) {
		return
	}
	if len(r.list) >= maxProblems {
		r.more++
		return
	}
	r.list = append(r.list, p)
}

// err is nil if there is no problem.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	rank := func(p Problem) int { return slices.Index(r.files, p.File) }
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.compare(b.Position))
	})
	list := Problems(r.list)
	if r.more > 0 {
		last := r.list[len(r.list)-1]
		list = append(list, Problem{
			Position: last.Position, excerpt: last.excerpt,
			Message: fmt.Sprintf("and %d more problems: mend those above first", r.more),
		})
	}
	return list
}

const maxMessageRunes = 500

// oneLine makes text from a file fit for one line of a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return text.Cut(s, maxMessageRunes)
}

const maxQuotedRunes = 60

// quoted is text from a file as messages show it.
func quoted(s string) string { return fmt.Sprintf("%q", text.Cut(s, maxQuotedRunes)) }

// listed joins names as a sentence does.
func listed(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}
