package command

import (
	"regexp"
	"slices"
	"strings"
)

// Unquoted lists the uses of parameters ($name, ${name}, "$@" of an array)
// that a script of Shell has outside of double quotes, where sh splits the
// value at spaces and looks for files that it matches. It reads the script as
// simply as can be; what it misses, such as eval, is not safer for that.
func (s Spec) Unquoted() []string {
	if !s.Shell || len(s.Argv) != 1 {
		return nil
	}
	scan := quoteScanner{text: s.Argv[0], frames: []frame{{}}, names: map[string]bool{}}
	for _, param := range s.Params {
		if param.Type == TypeArray {
			scan.items = true
		} else {
			scan.names[param.Name] = true
		}
	}
	for scan.at < len(scan.text) {
		scan.step()
	}
	return scan.found
}

// frame is a stretch of script with quotes of its own: all of it, $(...) or
// `...`.
type frame struct {
	end    byte // 0 for all of it
	quoted bool // in "..."
}

type quoteScanner struct {
	text   string
	at     int
	frames []frame
	names  map[string]bool
	items  bool   // an array is "$@"
	here   string // the word that ends the here-document of this line
	found  []string
}

var (
	variableUse = regexp.MustCompile(`^\$\{?([a-z][a-z0-9_]*|[@*1-9])`)
	hereForm    = regexp.MustCompile(`^<<-?[ \t]*['"\\]?([A-Za-z0-9_]+)['"]?`)
)

func (q *quoteScanner) step() {
	top, rest := &q.frames[len(q.frames)-1], q.text[q.at:]
	q.at++
	switch c := rest[0]; {
	case c == '\\':
		q.at++
	case c == '$':
		q.dollar(top, rest)
	case c == '"':
		top.quoted = !top.quoted
	case c == '`' && top.end == '`', c == ')' && top.end == ')' && !top.quoted:
		q.frames = q.frames[:len(q.frames)-1]
	case c == '`':
		q.frames = append(q.frames, frame{end: '`'})
	case top.quoted:
	case c == '(':
		q.frames = append(q.frames, frame{end: ')'})
	case c == '\'':
		q.skip(rest[1:], "'")
	case c == '#' && (q.at == 1 || strings.IndexByte(" \t\n;", q.text[q.at-2]) >= 0):
		comment, _, _ := strings.Cut(rest[1:], "\n")
		q.at += len(comment)
	case strings.HasPrefix(rest, "<<<"):
		q.at += 2
	case c == '<' && hereForm.MatchString(rest):
		match := hereForm.FindStringSubmatch(rest)
		q.here = match[1]
		q.at += len(match[0]) - 1
	case c == '\n' && q.here != "":
		q.skipHere()
	}
}

// dollar looks at a variable, and enters $(...).
func (q *quoteScanner) dollar(top *frame, rest string) {
	if strings.HasPrefix(rest, "$(") {
		q.at++
		q.frames = append(q.frames, frame{end: ')'})
		return
	}
	use := variableUse.FindStringSubmatch(rest)
	if use == nil {
		q.at += min(1, len(rest)-1) // $#, $$, $?
		if len(rest) > 1 && strings.IndexByte("\"'`{\\)", rest[1]) >= 0 {
			q.at--
		}
		return
	}
	q.at += len(use[0]) - 1
	positional := strings.Contains("@*123456789", use[1])
	if top.quoted || !q.names[use[1]] && !(positional && q.items) {
		return
	}
	if name := "$" + use[1]; !slices.Contains(q.found, name) {
		q.found = append(q.found, name)
	}
}

// skip goes on behind the next end, from where rest begins.
func (q *quoteScanner) skip(rest, end string) {
	before, _, found := strings.Cut(rest, end)
	q.at += len(before)
	if found {
		q.at += len(end)
	}
}

// skipHere goes on behind a here-document, where nothing is split.
func (q *quoteScanner) skipHere() {
	end := q.here
	q.here = ""
	for q.at < len(q.text) {
		line, _, _ := strings.Cut(q.text[q.at:], "\n")
		q.at = min(len(q.text), q.at+len(line)+1)
		if strings.TrimLeft(line, "\t") == end {
			return
		}
	}
}
