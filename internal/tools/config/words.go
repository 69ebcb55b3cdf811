package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/command"
)

// shellMarks mean something to a shell where they are not quoted. A text that
// has them was meant for one.
const shellMarks = "|&;<>()`*?[#"

// shellVariable is one as only a shell replaces it, assignment what only a shell
// takes for one.
var (
	shellVariable = lazy.Regexp(`^\$[A-Za-z_][A-Za-z0-9_]*`)
	assignment    = lazy.Regexp(`^\s*[A-Za-z_][A-Za-z0-9_]*=`)
)

// split takes a text apart at spaces, with the quotes of a shell: '...' is
// taken as it is, in "..." and outside a backslash takes the next character.
// There is no shell: what only one could do is refused.
func split(s string) (list []string, wrong string) {
	if name := assignment().FindString(s); name != "" {
		return nil, "begins with " + strings.TrimSpace(name) + ", which means something to a shell, and none is used: set the variable with env, or write env before it"
	}
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for i, r := range s {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		case r == '$' && s[:i] != "" && s[i-1] == '$': // $$ is one $
			word.WriteRune(r)
		case r == '$' && shellVariable().MatchString(s[i:]):
			found := shellVariable().FindString(s[i:])
			return nil, fmt.Sprintf("has %s, which means something to a shell, and none is used: write ${%s} for a variable of toolhost's environment, quote it, or set shell: true", found, strings.TrimPrefix(found, "$"))
		case strings.ContainsRune(shellMarks, r):
			return nil, fmt.Sprintf("has %q, which means something to a shell, and none is used: quote it, write a list of words, or set shell: true", r)
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Sprintf("has an unterminated quote (%c): close it", quote)
	case escaped:
		return nil, `ends with a \: take it out, or write \\`
	case begun:
		list = append(list, word.String())
	}
	return list, ""
}

// finish does what needs the whole entry: the command lines.
func (b *builder) finish(t *Tool, g *group) {
	switch t.Type {
	case TypeMCP:
		if s, ok := g.set["mcp"]; ok {
			t.MCP.Argv = b.commandLine(s, nil)
			b.place(t, s, t.MCP.Argv, nil)
		}
	case TypeCommand:
		b.finishCommand(t, g)
	}
}

// commandLine gives the words of a command, with ~/ and variables replaced, and
// a command with a slash found from the folder of the file.
func (b *builder) commandLine(s setting, guard func(string) string) []string {
	w := s.data.(words)
	nodes := s.node.items
	if w.text {
		var wrong string
		if w.list, wrong = split(w.script); wrong != "" {
			b.refuse(s.node, wrong)
			return nil
		}
		nodes = nil
	}
	if len(w.list) > maxWords {
		b.complain(s.node, "the command has %d words, more than %d: put some into a file", len(w.list), maxWords)
		return nil
	}
	argv := make([]string, len(w.list))
	for i, word := range w.list {
		at := s.node
		if nodes != nil {
			at = nodes[i]
		}
		argv[i] = b.argument(at, word, i == 0, guard)
	}
	return argv
}

// maxWords bounds a command.
const maxWords = 1024

func (b *builder) argument(at *node, word string, first bool, guard func(string) string) string {
	var wrong string
	expanded := word
	if word == "~" || strings.HasPrefix(word, "~/") {
		expanded, wrong = b.home(word)
		if guard != nil {
			expanded = guard(strings.TrimSuffix(expanded, word[1:])) + word[1:]
		}
	}
	if wrong == "" {
		expanded, wrong = b.expand(expanded, guard)
	}
	if wrong != "" {
		b.refuse(at, wrong)
		return word
	}
	if first && strings.Contains(expanded, "/") && !filepath.IsAbs(expanded) {
		dir := at.file.dir
		if guard != nil {
			dir = guard(dir)
		}
		expanded = filepath.Join(dir, expanded)
	}
	return expanded
}

// place shows a command that was found from the folder of the file under its
// whole path, and warns if it is not there. Others are looked for in PATH by
// each call.
func (b *builder) place(t *Tool, s setting, argv []string, guard func(string) string) {
	if len(argv) == 0 || !strings.Contains(argv[0], "/") || guard != nil && strings.ContainsAny(argv[0], "{}") {
		return
	}
	if wrong := b.missing(argv[0], pathProgram); wrong != "" && !b.isWorkers(t) {
		b.warn(s.node, "the command "+wrong)
	}
	list := s.data.(words).list
	if list == nil {
		list, _ = split(s.data.(words).script)
	}
	list = append([]string{strings.ReplaceAll(argv[0], "$", "$$")}, list[1:]...)
	s = t.settings[s.path]
	s.text = text.YAMLList(list)
	t.settings[s.path] = s
}

// literal keeps braces of a variable's value from being placeholders.
func literal(s string) string { return strings.NewReplacer("{", "{{", "}", "}}").Replace(s) }

// finishCommand completes t.Command and has package command check it.
func (b *builder) finishCommand(t *Tool, g *group) {
	s, ok := g.set["command"]
	if !ok {
		return
	}
	w := s.data.(words)
	switch {
	case t.Command.Shell && !w.text:
		b.complain(s.node, "shell: true takes the command as one text, not as a list: write \"...\", or take shell out")
		return
	case t.Command.Shell:
		t.Command.Argv = []string{w.script}
	default:
		if t.Command.Argv = b.commandLine(s, literal); t.Command.Argv == nil {
			return
		}
		b.place(t, s, t.Command.Argv, literal)
	}
	for _, n := range g.named["params"] {
		p := command.Param{Name: n.value}
		apply(&p, paramKeys, g.set.below("params."+n.value))
		t.Command.Params = append(t.Command.Params, p)
	}
	for _, problem := range t.Command.Check() {
		at := b.commandNode(g, s, problem.Path)
		b.report.add(at.problem(problem.Text))
	}
}

// commandNode finds the place of a problem of package command.
func (b *builder) commandNode(g *group, s setting, path string) *node {
	var i int
	if _, err := fmt.Sscanf(path, "argv[%d]", &i); err == nil || path == "argv" {
		if i < len(s.node.items) {
			return s.node.items[i]
		}
		return s.node
	}
	at := g.node
	for _, name := range strings.Split(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		next := at.child(name)
		if next == nil {
			break
		}
		at = next
	}
	if at == g.node {
		return s.node
	}
	return at
}
