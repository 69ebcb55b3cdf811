package call

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/sandbox"
)

// Bounds of the search for paths that a failed call would have needed.
const (
	maxNamedText  = 16 << 10 // bytes of arguments, and of what the tool said
	maxNamedJSON  = 1 << 20  // all of the arguments
	maxNamedPaths = 32
	maxNotGranted = 3
	// lookTime bounds the look at the host, whose file systems may hang, and
	// MaxLooks those that are under way or hang.
	lookTime = 200 * time.Millisecond
	MaxLooks = 4
)

// failedByItself are the outcomes in which a missing grant can have had a part.
var failedByItself = []api.Status{api.StatusToolError, api.StatusCrashed, api.StatusNoResult, api.StatusStartFailed}

// hintAtGrants puts paths into the result, which the tool does not see: those that
// a failed call has named, that this host has and the call could not see.
func (c *Call) hintAtGrants(r *api.Result) {
	if c.p.Plan == nil || c.responded.GetError() == nil && !slices.Contains(failedByItself, r.Status) {
		return
	}
	hintAt(r, c.look(c.namedPaths(r)))
}

// hintAtDescribed has the result of a call that has no plan say what the Describe that it
// failed by has missed. That of an adapter alone had what calls are granted.
func (c *Call) hintAtDescribed(r, described *api.Result) {
	if c.p.Plan == nil && c.p.Request.Tool.Adapter && described != nil {
		hintAt(r, described.Retry.NotGranted)
	}
}

// hintAt says of paths how they are granted.
func hintAt(r *api.Result, missing []string) {
	if r.Retry.NotGranted = missing; len(missing) == 0 {
		return
	}
	var flags []string
	for _, path := range missing {
		flags = append(flags, "--read "+text.ShellWord(path))
	}
	were, that, them := " were", "those", "them"
	if len(flags) == 1 {
		were, that, them = " was", "that", "it"
	}
	hint := strings.Join(missing, " and ") + " of the host" + were + " not granted to the call: if it may see " + that + ", grant " + them + " (" + strings.Join(flags, " ") + ", or read: in toolhost.yaml)"
	r.Retry.Hint = joined(r.Retry.Hint, hint)
}

// lacking are the words, in lower case, of programs that have not reached a file.
var lacking = []string{"no such", "not found", "notfound", "not exist", "missing", "enoent", "denied", "eacces", "eperm", "not permitted", "cannot", "can't", "could not", "couldn't", "unable", "failed"}

// lacks gives the lines in which a program says that it has not reached something.
func lacks(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(lacking, func(words string) bool { return strings.Contains(lower, words) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// look is notGranted with a bound on how long it takes, and on what hangs.
func (c *Call) look(names []string) []string {
	late := time.After(lookTime)
	select {
	case c.Looks <- struct{}{}:
	case <-late:
		return nil
	}
	found := make(chan []string, 1)
	c.Tasks.Run("look for what was not granted", func() {
		defer func() { <-c.Looks }()
		found <- c.notGranted(names)
	})
	select {
	case missing := <-found:
		return missing
	case <-late:
		return nil
	}
}

// namedPaths are those that the tool has not reached, by its own words;
// relative ones are in the arguments, too, from the folder in which the call was made.
func (c *Call) namedPaths(r *api.Result) (paths []string) {
	said := r.Output.Stderr.Head[:min(len(r.Output.Stderr.Head), maxNamedText)]
	said += "\n" + r.Output.Stderr.Tail[max(0, len(r.Output.Stderr.Tail)-maxNamedText):]
	if r.ToolError != nil {
		said += "\n" + r.ToolError.Message[:min(len(r.ToolError.Message), maxNamedText)]
	}
	if failed := c.responded.GetError().GetMessage(); failed != "" {
		said += "\n" + failed[:min(len(failed), maxNamedText)]
	}
	said = lacks(said)
	here, err := os.Getwd()
	if err != nil || c.p.Dir != sandbox.Workspace {
		here = ""
	}
	for _, word := range slices.Concat(pathsIn(said), c.argumentPaths()) {
		switch {
		case len(paths) == maxNamedPaths:
			return paths
		case !printable(word) || !names(said, word):
			continue
		case filepath.IsAbs(word):
		case here == "" || !slices.Contains(c.argumentWords(), word):
			continue
		default:
			word = filepath.Join(here, word)
		}
		if word = filepath.Clean(word); !slices.Contains(paths, word) {
			paths = append(paths, word)
		}
	}
	return paths
}

// names says that a text names a path, and not only one that begins with it, or a
// longer word. A program may have put a folder before a relative one.
func names(said, path string) bool {
	for from := 0; ; from += len(path) {
		at := strings.Index(said[from:], path)
		if at < 0 {
			return false
		}
		if from += at; !endsInName(said[:from], filepath.IsAbs(path)) && !goesOn(said[from+len(path):]) {
			return true
		}
	}
}

// endsInName says that what follows text belongs to the name at its end.
func endsInName(text string, absolute bool) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return inName(last) || absolute && (last == '/' || last == '.')
}

// goesOn says that text continues the path before it. The full stop of a sentence does not.
func goesOn(text string) bool {
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "."))
	return next == '/' || inName(next)
}

func inName(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-')
}

// printable says that a path can stand in a line of text.
func printable(path string) bool {
	return path != "" && utf8.ValidString(path) && !strings.ContainsFunc(path, unicode.IsControl)
}

// argumentPaths are the words of the arguments, and the absolute paths in them.
func (c *Call) argumentPaths() (paths []string) {
	for _, word := range c.argumentWords() {
		paths = append(append(paths, word), pathsIn(word)...)
	}
	return paths
}

// argumentWords are a command's words, or the texts in a tool's arguments.
func (c *Call) argumentWords() []string {
	if c.p.Request.Command != nil {
		return c.p.Request.Command.Argv[1:]
	}
	var value any
	if len(c.p.Arguments) > maxNamedJSON || json.Unmarshal(c.p.Arguments, &value) != nil {
		return nil
	}
	return textsOf(value, nil)
}

func textsOf(value any, list []string) []string {
	switch v := value.(type) {
	case string:
		if len(list) < maxNamedPaths && len(v) <= maxNamedText {
			list = append(list, v)
		}
	case []any:
		for _, one := range v {
			list = textsOf(one, list)
		}
	case map[string]any:
		for _, one := range v {
			list = textsOf(one, list)
		}
	}
	return list
}

// namedPath is an absolute path in a text: in quotes, or up to what ends a word.
var namedPath = lazy.Regexp("'(/[^'\n]+)'|\"(/[^\"\n]+)\"|`(/[^`\n]+)`|(?:^|[\\s=:(\\[<,'\"`])(/[^/\\s'\"`:;,|&()<>\\[\\]{}][^\\s'\"`:;,|&()<>\\[\\]{}]*)")

// pathsIn leaves out those with the number of a line, as stack traces have them: they say
// where a program was made, and not what it wanted.
func pathsIn(said string) (paths []string) {
	for _, at := range namedPath().FindAllStringSubmatchIndex(said, maxNamedPaths) {
		if rest := said[at[1]:]; len(rest) > 1 && rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9' {
			continue
		}
		group := 2 // the one that has matched
		for at[group] < 0 {
			group += 2
		}
		paths = append(paths, strings.TrimRight(said[at[group]:at[group+1]], ".!?"))
	}
	return paths
}

// notGranted are those of the paths that this host has and the call has not,
// without secrets and what belongs to toolhost.
func (c *Call) notGranted(paths []string) (missing []string) {
	own := c.Hidden()
	for _, path := range paths {
		hidden := slices.ContainsFunc(own, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
		if hidden || !c.p.Plan.Hides(path) || c.p.Mask.Text(path) != path {
			continue
		}
		if _, err := os.Lstat(path); err == nil && len(missing) < maxNotGranted {
			missing = append(missing, path)
		}
	}
	return missing
}
