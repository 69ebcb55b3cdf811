package command

import (
	"regexp"
	"slices"
	"strings"
)

// fact is what is known of a word's place in the command.
type fact struct {
	// program is the interpreter whose code the word is.
	program string
	// always: the word is taken as code even if it begins with "-".
	always bool
	// ends: the word is a -- behind which nothing is an option any more.
	ends bool
}

// analyse finds code in the command line, and the -- that counts.
func (p *plan) analyse() {
	p.facts = make([]fact, len(p.words))
	if len(p.words) == 0 {
		return
	}
	start, until := p.unwrap(), len(p.words)
	for i, w := range p.words {
		text, literal := w.literal()
		name := programName(text)
		prog, known := programs[name]
		// A wrapper may be one of code as well: env -S.
		if !literal || !known || i > start && !slices.Contains(anywhere, name) && !p.handed(i) {
			continue
		}
		v := visit{plan: p, name: name, program: prog, sure: i == start, code0: len(p.words)}
		for next := i + 1; next < len(p.words) && !v.done; next++ {
			next += v.step(next)
		}
		if i == start {
			until = v.code0
		}
	}
	p.markEnds(start, until)
}

// handed says whether the word before is find's way to name a command.
func (p *plan) handed(i int) bool {
	before, _ := p.words[i-1].literal()
	return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, before)
}

// markEnds finds the -- that the command at start takes for the end of its
// options. Behind an interpreter's code one is only an argument, but for those
// that visit has found.
func (p *plan) markEnds(start, until int) {
	if start >= len(p.words) || slices.Contains(passers, programName(p.words[start].prefix())) {
		return
	}
	for i := start + 1; i < until; i++ {
		text, _ := p.words[i].literal()
		p.facts[i].ends = text == "--"
	}
}

// unwrap finds the command that wrappers such as env and timeout run in the
// end, beyond all words where none is sure.
func (p *plan) unwrap() int {
	for i := 0; i < len(p.words); i = p.wrapped(i) {
		text, _ := p.words[i].literal()
		if _, ok := wrappers[programName(text)]; !ok {
			return i
		}
	}
	return len(p.words)
}

var assignmentForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// wrapped finds the command that the wrapper at index runs.
func (p *plan) wrapped(index int) int {
	name := programName(p.words[index].prefix())
	wrapper := wrappers[name]
	operands, ended := wrapper.operands, false
	for i := index + 1; i < len(p.words); i++ {
		w, head := p.words[i], p.words[i].prefix()
		switch {
		case !ended && head == "--" && w.fixed():
			ended = true
		case !ended && len(head) > 1 && head[0] == '-':
			if w.fixed() {
				i += valueWords(head, wrapper.takes, nil)
			}
		case wrapper.assigns && assignmentForm.MatchString(head):
		case operands > 0 && !p.vanishes(w):
			operands--
		case w.fixed():
			return i
		default:
			p.complain(argvPath(i), "%s stands where %s expects the command to run: write the command as it is", shown(p.spec.Argv[i]), shown(name))
			return len(p.words)
		}
	}
	return len(p.words)
}

// visit walks along the words of one program.
type visit struct {
	*plan
	name string
	program
	sure     bool // what the words are is known, not guessed
	ended    bool // by --
	flagged  bool // a letter said that an operand is code
	filed    bool // the code comes from elsewhere
	guessing bool // the option before may take a value
	seen     int  // operands
	code0    int  // the first word of code
	done     bool
}

// step looks at one word and says how many more belong to it.
func (v *visit) step(i int) (more int) {
	w, head := v.words[i], v.words[i].prefix()
	if v.ended || len(head) < 2 || head[0] != '-' && (head[0] != '+' || v.operands != flaggedFirst) {
		v.operand(i)
		return 0
	}
	v.guessing = false
	if w.when != "" {
		v.sure = false
	}
	if _, literal := w.literal(); head == "--" && literal {
		v.ended = true
		v.facts[i].ends = v.facts[i].ends || v.ends && v.sure && v.code0 < i
		return 0
	}
	return v.option(i, head)
}

func (v *visit) option(i int, head string) (more int) {
	name, _, valued := strings.Cut(head, "=")
	if found, joined := v.runs(head); found {
		return v.runsValue(i, joined)
	}
	switch {
	case slices.Contains(v.flags, name):
		return v.flag(i, valued)
	case slices.Contains(v.files, name):
		return v.file(i, valued)
	case strings.HasPrefix(head, "--") && !valued:
		more = valueWords(name, v.takes, v.pairs)
		v.guessing = more == 0 && !slices.Contains(v.switches, name)
		return more
	case strings.HasPrefix(head, "--"):
		return 0
	}
	return v.cluster(i, head)
}

// runs says whether an option's value is code or runs some, and whether that
// value is joined to it in one word.
func (v *visit) runs(head string) (found, joined bool) {
	options := v.never
	if v.seen == 0 || v.name == "git" && slices.Contains(v.spec.Argv, "clone") { // clone -c is git's own -c again
		options = slices.Concat(v.never, v.early)
	}
	name, _, valued := strings.Cut(head, "=")
	if slices.Contains(options, name) && len(name) > 2 {
		return true, valued
	}
	if strings.HasPrefix(head, "--") {
		// getopt takes the beginning of a long option for the whole.
		short := len(name) > 4 && !slices.Contains(v.switches, name) && !slices.Contains(v.flags, name) && !slices.Contains(v.takes, name)
		return short && slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name) }), valued
	}
	for at, letter := range head[1:] {
		option := head[:1] + string(letter)
		switch {
		case slices.Contains(options, option):
			return true, at+2 < len(head)
		case slices.Contains(v.takes, option), strings.ContainsRune(v.rest+v.letters, letter):
			return false, false
		case letter < '0' || letter > 'z' || letter > '9' && letter < 'A':
			return false, false
		}
	}
	return false, false
}

// runsValue refuses a placeholder in the value of such an option.
func (v *visit) runsValue(i int, joined bool) (more int) {
	if _, literal := v.words[i].literal(); !literal {
		v.refuseOption(i, i)
		return 0
	}
	if joined || i+1 >= len(v.words) {
		return 0
	}
	if !v.words[i+1].fixed() {
		v.refuseOption(i, i+1)
	}
	return 1
}

func (v *visit) refuseOption(option, at int) {
	v.complain(argvPath(at), "%s puts a value into what %s of %s runs, and so the value would become code: %s",
		shown(v.spec.Argv[at]), shown(v.words[option].prefix()), v.name, fixedOption)
}

// file is an option that brings the code from elsewhere. One that may be absent
// says nothing for sure.
func (v *visit) file(i int, valued bool) (more int) {
	_, literal := v.words[i].literal()
	if v.words[i].when != "" {
		return 0
	}
	v.filed = true
	if valued || !literal {
		return 0
	}
	return 1
}

// flag is an option with code in the next word, or behind "=".
func (v *visit) flag(i int, valued bool) (more int) {
	w := v.words[i]
	v.filed = v.filed || v.operands == firstOperand && w.when == ""
	if _, literal := w.literal(); literal {
		if !valued && v.operands != allOperands {
			v.code(i + 1)
			return 1
		}
		return 0
	}
	// The code is all of what is behind the sign: the word vanishes with it.
	if !(valued && len(w.pieces) == 2 && strings.HasSuffix(w.prefix(), "=") && !v.params[w.pieces[1].name].array) {
		v.refuse(i)
	}
	return 0
}

// cluster is one or more short options: -c, -Sc, -Wignore.
func (v *visit) cluster(i int, head string) (more int) {
	_, literal := v.words[i].literal()
	for at, letter := range head[1:] {
		v.ends = v.ends && !strings.ContainsRune(v.parses, letter)
		last := literal && at == len(head)-2
		option := head[:1] + string(letter)
		switch {
		case strings.ContainsRune(v.letters, letter) && v.operands == flaggedFirst:
			v.flagged = true
			if !literal {
				v.refuse(i)
			}
		case strings.ContainsRune(v.letters, letter):
			if last {
				return v.flag(i, false)
			}
			v.filed = v.filed || v.operands == firstOperand && v.words[i].when == ""
			if !literal {
				v.refuse(i)
			}
			return 0
		case slices.Contains(v.files, option):
			return v.file(i, !last)
		case slices.Contains(v.takes, head) || slices.Contains(v.takes, option):
			return valueWords(head, v.takes, v.pairs)
		case strings.ContainsRune(v.rest, letter):
			return 0
		case strings.ContainsRune(v.last, letter):
			v.done = true
			return 0
		}
	}
	return 0
}

// operand is a word that is not an option.
func (v *visit) operand(i int) {
	w := v.words[i]
	uncertain := v.guessing || v.vanishes(w)
	v.guessing = false
	defer func() { v.seen++ }()
	switch {
	case v.operands == flaggedFirst && v.flagged:
		v.code(i)
		v.done = true
	case v.operands == firstOperand && !v.filed:
		if text, literal := w.literal(); v.seen == 0 && literal && slices.Contains(v.verbs, text) {
			return
		}
		v.code(i)
		v.done = !uncertain
	case v.operands == eachOperand && v.seen >= v.first, v.operands == allOperands && v.seen >= v.first && !v.filed:
		v.code(i)
		v.alone(i)
	case v.operands >= eachOperand && !v.filed:
		if v.vanishes(w) {
			v.complainOfGap(i)
		}
	case uncertain:
		v.sure = false
	default:
		v.done = !v.permutes
	}
}

// alone refuses a placeholder among words that are joined to code.
func (v *visit) alone(i int) {
	if v.operands == allOperands && !v.words[i].fixed() && (v.seen > v.first || i < len(v.words)-1) {
		v.refuse(i)
	}
}

// code is told that a word is code. A placeholder may only be all of it, in
// every call.
func (v *visit) code(i int) {
	v.code0 = min(v.code0, i)
	if i >= len(v.words) || v.words[i].fixed() {
		return
	}
	if _, whole := v.words[i].whole(); !whole && v.words[i].when == "" {
		v.refuse(i)
		return
	}
	if v.vanishes(v.words[i]) {
		v.complainOfGap(i)
		return
	}
	v.facts[i].program = v.name
	v.facts[i].always = v.always && v.sure
}

func (v *visit) refuse(i int) {
	v.complain(argvPath(i), "%s puts a value into code for %s, and so the value would become code: %s; or make the placeholder the whole argument",
		shown(v.spec.Argv[i]), v.name, v.remedy)
}

func (v *visit) complainOfGap(i int) {
	v.complain(argvPath(i), "%s may be none or several words, and so another value could stand where %s expects code: make it one required value",
		shown(v.spec.Argv[i]), v.name)
}
