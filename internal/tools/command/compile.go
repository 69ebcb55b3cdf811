package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What the kernel takes (execve(2)): maxWordBytes is MAX_ARG_STRLEN less the
// NUL; maxArgvBytes, with wordCost for each pointer and NUL, leaves half of the
// usual 2 MiB to the environment.
const (
	maxWordBytes = 128<<10 - 1
	maxArgvBytes = 1 << 20
	wordCost     = 9
)

// plan is a Spec made ready.
type plan struct {
	spec     Spec
	params   map[string]*param
	order    []*param // declared ones first, then as they are used
	words    []word   // of Argv; none with Shell
	facts    []fact   // for each word
	stdin    string   // the parameter; "" is none
	problems []Problem
}

// Check returns the problems of s.
func (s Spec) Check() []Problem { return compile(s).problems }

func compile(s Spec) *plan {
	p := &plan{spec: s, params: map[string]*param{}}
	p.stdin = p.stdinParam()
	p.declare()
	if s.Shell {
		p.checkScript()
	} else {
		p.parseArgv()
	}
	p.infer()
	if param := p.params[p.stdin]; param != nil && param.array {
		p.complain("stdin", "%s is an array: only one value can go to stdin", shown(p.stdin))
	}
	if !s.Shell {
		p.checkWords()
		p.analyse()
	}
	p.checkDefaults()
	p.checkUse()
	p.checkRest()
	return p
}

func (p *plan) complain(path, format string, args ...any) {
	problem := Problem{path, fmt.Sprintf(format, args...)}
	if !slices.Contains(p.problems, problem) {
		p.problems = append(p.problems, problem)
	}
}

func argvPath(i int) string { return fmt.Sprintf("argv[%d]", i) }

// stdinParam reads Stdin, a name with or without braces.
func (p *plan) stdinParam() string {
	name := p.spec.Stdin
	if inner, ok := strings.CutPrefix(name, "{"); ok {
		name = strings.TrimSuffix(inner, "}")
	}
	if name == "" && p.spec.Stdin == "" {
		return ""
	}
	if !nameForm().MatchString(name) || p.spec.Stdin != name && p.spec.Stdin != "{"+name+"}" {
		p.complain("stdin", "%s is not one parameter: want its name, such as \"{text}\"", shown(p.spec.Stdin))
		return ""
	}
	return name
}

func (p *plan) parseArgv() {
	for i, template := range p.spec.Argv {
		w, err := parseWord(template)
		if err != nil {
			p.complain(argvPath(i), "%s: %v", shown(template), err)
			w = word{pieces: []piece{{text: template}}}
		}
		p.words = append(p.words, w)
		p.checkText(argvPath(i), template)
	}
	switch {
	case len(p.words) == 0:
		p.complain("argv", "there is no command: name one")
	case !p.words[0].fixed() || p.words[0].prefix() == "":
		p.complain(argvPath(0), "%s is not a command: it must be one, without placeholders", shown(p.spec.Argv[0]))
	}
}

// checkText refuses what no argument vector can hold.
func (p *plan) checkText(path, text string) {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		p.complain(path, "%s contains a NUL character: remove it", shown(text))
	case len(text) > maxWordBytes:
		p.complain(path, "it has %d bytes, a word may have %d: put it into a file", len(text), maxWordBytes)
	}
}

// checkWords compares the words with the types of the parameters in them.
func (p *plan) checkWords() {
	for i, w := range p.words {
		p.checkTypes(i, w)
		p.checkPrefix(i, w)
		p.checkSwallow(i, w)
	}
}

func (p *plan) checkTypes(i int, w word) {
	path, template := argvPath(i), shown(p.spec.Argv[i])
	if w.when != "" {
		if param := p.params[w.when]; !param.array && param.kind != TypeBoolean && !param.optional() {
			p.complain(path, "%s is there in every call, since %s always has a value: write the word alone, or set params.%s.required: false, without a default", template, w.when, w.when)
		}
	}
	whole := w.whole()
	for _, piece := range w.pieces {
		param := p.params[piece.name]
		switch {
		case piece.name == "":
		case piece.each && !param.array:
			p.complain(path, "%s: %s is not an array: write {%s}, or declare type array", template, piece.name, piece.name)
		case param.array && !piece.each && !whole:
			p.complain(path, "%s: %s is an array: write {%s...} to repeat the word for each item", template, piece.name, piece.name)
		}
	}
}

// checkPrefix refuses "-{name}" and the like, where the value would choose the
// option.
func (p *plan) checkPrefix(i int, w word) {
	if _, literal := w.literal(); literal || !strings.HasPrefix(w.prefix(), "-") || settled(w.prefix()) {
		return
	}
	p.complain(argvPath(i), "%s: the value would decide which option this is: write the option in full, as in --name={value} or -n{value}", shown(p.spec.Argv[i]))
}

// settled says whether the beginning of an option already says which one it
// is: a letter for a short one, or a sign that ends a long one.
func settled(prefix string) bool {
	return short(prefix) || strings.ContainsFunc(prefix[1:], func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// short says whether it is one short option: -n. Without a value behind it, it
// would take the next word.
func short(prefix string) bool { return len(prefix) == 2 && prefix[0] == '-' && prefix != "--" }

// checkSwallow refuses an option before a word that may be absent: it would
// take the word after that for its value.
func (p *plan) checkSwallow(i int, w word) {
	if i < 2 || i == len(p.words)-1 || !p.vanishes(w) || w.when != "" {
		return
	}
	option := p.words[i-1]
	text, literal := option.literal()
	if !literal || !strings.HasPrefix(text, "-") || text == "--" || strings.Contains(text, "=") {
		return
	}
	if when := p.params[option.when]; when != nil && (slices.Contains(w.names(), when.Name) || when.kind == TypeBoolean && !when.array) {
		return // they go together, or it is a flag
	}
	name, joint := w.names()[0], text+"="
	if short(text) {
		joint = text
	}
	p.complain(argvPath(i), "%s may be absent, and %s before it would take the next word: write %s{%s}, or {%s?%s} before it, or -- between them",
		shown(p.spec.Argv[i]), shown(text), joint, name, name, text)
}

// vanishes says whether a call may leave a word out.
func (p *plan) vanishes(w word) bool {
	return w.when != "" || slices.ContainsFunc(w.pieces, func(piece piece) bool {
		param := p.params[piece.name]
		return param != nil && (param.array || param.optional())
	})
}

func (p *plan) checkUse() {
	for _, param := range p.order {
		if !param.used && param.Name != p.spec.TimeoutArgument {
			p.complain("params."+param.Name, "it is declared, but neither the command nor stdin uses it: remove it, or write %s", p.reference(param))
		}
	}
}

// reference is how the command uses a parameter.
func (p *plan) reference(param *param) string {
	switch {
	case p.spec.Shell && param.array:
		return `"$@"`
	case p.spec.Shell:
		return `"$` + param.Name + `"`
	}
	return "{" + param.Name + "}"
}

// checkDefaults refuses a default that every call without the argument would be
// refused for.
func (p *plan) checkDefaults() {
	for _, param := range p.order {
		texts, err := param.texts(param.Default)
		dash := slices.IndexFunc(texts, func(text string) bool { return strings.HasPrefix(text, "-") })
		if param.Default == nil || err != nil || dash < 0 || param.trusted() || !p.exposed(param) {
			continue
		}
		remedy := "set allowDash: true"
		switch {
		case p.spec.Shell:
		case p.behindDash(param):
			remedy += "; the -- before it is only an argument to what the command runs"
		default:
			remedy += ", or write the word -- before it if the command takes that"
		}
		p.complain("params."+param.Name+".default", `%s begins with "-", and so every call without %s would be refused: %s`, shown(texts[dash]), param.Name, remedy)
	}
}

// behindDash says whether there is a -- before a param, though none that counts.
func (p *plan) behindDash(param *param) bool {
	dash := slices.IndexFunc(p.words, func(w word) bool { return w.fixed() && w.prefix() == "--" })
	return dash >= 0 && slices.ContainsFunc(p.words[dash:], func(w word) bool { return slices.Contains(w.names(), param.Name) })
}

// exposed says whether a value of param could be taken for an option.
func (p *plan) exposed(param *param) bool {
	if p.spec.Shell {
		return param.Name != p.stdin
	}
	for i, w := range p.words {
		switch {
		case w.fixed() && p.facts[i].ends:
			return false
		case len(w.pieces) > 0 && w.pieces[0].name == param.Name && !p.facts[i].always:
			return true
		}
	}
	return false
}

func (p *plan) checkRest() {
	for _, code := range slices.Sorted(maps.Keys(p.spec.ExitCodes)) {
		if code < 0 || code > 255 {
			p.complain(fmt.Sprintf("exitCodes.%d", code), "%d is not an exit status: want 0 to 255", code)
		}
	}
	switch p.spec.Format {
	case "", FormatText, FormatJSON, FormatNDJSON:
	default:
		p.complain("format", "%s is not a format: want %s, %s or %s", shown(string(p.spec.Format)), FormatText, FormatJSON, FormatNDJSON)
	}
	if name := p.spec.TimeoutArgument; name != "" {
		if !nameForm().MatchString(name) || name == "_meta" {
			p.complain("timeoutArgument", "%s is not a name for a parameter", shown(name))
		} else if param := p.params[name]; param != nil && (param.array || param.kind != TypeInteger) {
			p.complain("timeoutArgument", "%s is declared as %s: a timeout in milliseconds is an integer", shown(name), param.Type)
		}
	}
}
