package config

import (
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/callargs"
	"github.com/toolhost/toolhost/sandbox"
)

// workspaceWord stands for the call's own folder among paths.
const workspaceWord = "workspace"

var variableForm = callargs.VariableForm

// maxExpandedBytes bounds what variables make of one text.
const maxExpandedBytes = 64 << 10

// expand replaces ${NAME}, ${NAME:-default} and $$, and leaves every other $ as
// it is. guard, if not nil, is applied to what a variable or its default gives.
func (r *reader) expand(s string, guard func(string) string) (expanded, wrong string) {
	var out strings.Builder
	for s != "" {
		before, after, found := strings.Cut(s, "$")
		out.WriteString(before)
		switch {
		case !found:
			s = ""
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			s = after[1:]
		case !strings.HasPrefix(after, "{"):
			out.WriteByte('$')
			s = after
		default:
			inner, rest, closed := strings.Cut(after[1:], "}")
			if !closed {
				return "", "has ${ without }: close it, or write $${ for these characters"
			}
			value, wrong := r.variable(inner)
			if wrong != "" {
				return "", wrong
			}
			if guard != nil {
				value = guard(value)
			}
			out.WriteString(value)
			s = rest
		}
		if out.Len() > maxExpandedBytes {
			return "", "becomes longer than 64 KiB by its variables: shorten them"
		}
	}
	return out.String(), ""
}

// variable is what stands between ${ and }.
func (r *reader) variable(inner string) (value, wrong string) {
	name, otherwise, hasDefault := strings.Cut(inner, ":-")
	if !variableForm().MatchString(name) {
		return "", "has ${" + text.Cut(inner, 20) + "}, which names no variable: write ${NAME} or ${NAME:-default}, or $$ for one $"
	}
	// As in a shell, :- also stands in for an empty variable.
	if value, set := r.variableOf(name); set && (value != "" || !hasDefault) {
		return value, ""
	}
	if !hasDefault {
		return "", "needs the variable " + name + ", which is not set: set it, or write ${" + name + ":-default}; $$ is a $ that the program is to see"
	}
	return otherwise, ""
}

// home replaces a ~ in front.
func (r *reader) home(s string) (path, wrong string) {
	rest, tilde := strings.CutPrefix(s, "~")
	switch {
	case !tilde:
		return s, ""
	case rest != "" && rest[0] != '/':
		return "", "begins with the home of another user: write the whole path"
	case r.machine.Home == "":
		return "", "begins with ~, but no home is known: set HOME, or write the whole path"
	}
	return r.machine.Home + rest, ""
}

// path makes a path absolute, from the folder of the file that names it.
func (r *reader) path(n *node) (path, wrong string) {
	switch {
	case n.shape == number || n.shape == boolean:
		return "", "is not a path: quote it, or write ./" + n.value
	case n.shape != str || n.value == "":
		return "", "is not a path: write one, such as ~/folder"
	}
	path, wrong = r.home(n.value)
	if wrong == "" {
		path, wrong = r.expand(path, nil)
	}
	switch {
	case wrong != "":
		return "", wrong
	case path == "":
		return "", "is an empty path when its variables are replaced: set them, or write the path"
	case strings.ContainsAny(path, "\x00\n\r"):
		return "", "holds a character that no path should: take it out"
	case !filepath.IsAbs(path):
		path = filepath.Join(n.file.dir, path)
	}
	return filepath.Clean(path), ""
}

// word is one argument for a program: a ~/ in front and variables are replaced,
// nothing else.
func (r *reader) word(n *node) (word, wrong string) {
	if n.shape != str && n.shape != number && n.shape != boolean {
		return "", "is not text"
	}
	word = n.value
	if word == "~" || strings.HasPrefix(word, "~/") {
		if word, wrong = r.home(word); wrong != "" {
			return "", wrong
		}
	}
	return r.expand(word, nil)
}

// missing says what of a path is not there.
func (r *reader) missing(path string, must int) (wrong string) {
	if must == pathAny {
		return ""
	}
	info, err := r.machine.stat(path)
	switch {
	case notThere(err):
		return "names " + path + ", which does not exist: make it, or correct the path"
	case err != nil:
		return "names " + path + ", which cannot be looked at (" + reason(err).Error() + "): correct the path, or its permissions"
	case must == pathFolder && !info.IsDir():
		return "names " + path + ", which is not a folder: name one"
	case must == pathFile && !info.Mode().IsRegular():
		return "names " + path + ", which is not a plain file: name one"
	case (must == pathProgram || must == pathPlugin) && r.machine.isPack(path, info):
		if must == pathPlugin {
			return ""
		}
		return "names the pack " + path + ", which is not a program: packs are plugins"
	case must == pathPlugin && !info.Mode().IsRegular():
		return "names " + path + ", which is neither a program nor a pack: name an executable file, or what toolsdk pack has made"
	case must == pathProgram && !info.Mode().IsRegular():
		return "names " + path + ", which is not a program: name an executable file"
	case must >= pathProgram && info.Mode().Perm()&0o111 == 0:
		return "names " + path + ", which is not executable: chmod +x it"
	}
	return ""
}

// refuseGrant says why a path cannot be shown to a call.
func refuseGrant(path string) (wrong string) {
	if sandbox.Showable(path) {
		return ""
	}
	return "cannot be granted: every call has its own " + path + "; grant something else"
}
