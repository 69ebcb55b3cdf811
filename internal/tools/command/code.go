package command

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
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

// interpreter is a program that takes code as a word.
type interpreter struct {
	// option ends with what stands before the code: in the same word, or alone in
	// the one before.
	option func() *regexp.Regexp
	// takes are options with a value in the next word; behind any other word that
	// is not an option, nothing is the interpreter's own.
	takes []string
	// passes: options may stand between, and a -- behind the code ends none: the
	// code hands its words to other programs.
	passes bool
	// always: what follows the option is code even if it begins with "-".
	always bool
	remedy string
}

var (
	shell = interpreter{
		option: lazy.Regexp(`^-[A-Za-z]*c$`), takes: []string{"-o", "+o", "-O", "+O", "-eo", "--rcfile", "--init-file"}, passes: true,
		remedy: `hand the value over as a word behind the code and a name, and read it there as "$1"`,
	}
	python = interpreter{option: lazy.Regexp(`^-[A-Za-z]*c$`), takes: []string{"-W", "-X", "--check-hash-based-pycs"}, always: true, remedy: positional + "sys.argv[1]"}
	node   = interpreter{option: lazy.Regexp(`^(-e|-p|-pe|--eval|--print)=?$`), takes: []string{"-r", "--require", "--import", "--loader", "-C", "--conditions", "--env-file"}, remedy: positional + "process.argv[1]"}
	perl   = interpreter{option: lazy.Regexp(`^-([^-MmIF/][^MmIF/]*)?[eE]$`), takes: []string{"-I"}, always: true, remedy: positional + "$ARGV[0]"}
	ruby   = interpreter{option: lazy.Regexp(`^-([^-rIKEC/][^rIKEC/]*)?e$`), takes: []string{"-I", "-C", "-E", "-r"}, remedy: positional + "ARGV[0]"}
	php    = interpreter{option: lazy.Regexp(`^(-r|--run=?)$`), takes: []string{"-c", "-d", "-f", "-t", "-z"}, remedy: positional + "$argv[1]"}
)

const positional = "hand the value over as a word behind the code, and read it there as "

// interpreters are known by the names of programName, and found anywhere in the
// command: one program may run another. What other programs do with their words
// is for the sandbox to bound.
var interpreters = map[string]interpreter{
	"sh": shell, "bash": shell, "dash": shell, "ash": shell, "zsh": shell, "ksh": shell, "mksh": shell, "fish": shell, "su": shell,
	"python": python, "pypy": python, "node": node, "nodejs": node, "perl": perl, "ruby": ruby, "php": php,
}

// wrappers run the command that their words end with. Their values are the
// options with a value in the next word.
var wrappers = map[string][]string{
	"env":     {"-u", "--unset", "-C", "--chdir"},
	"sudo":    {"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"},
	"nice":    {"-n", "--adjustment"},
	"ionice":  {"-c", "-n", "--class", "--classdata"},
	"timeout": {"-k", "-s", "--kill-after", "--signal"},
	"stdbuf":  {"-i", "-o", "-e", "--input", "--output", "--error"},
	"nohup":   nil, "setsid": nil, "busybox": nil, "command": nil, "exec": nil,
	"xargs": {"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs"},
}

// passers hand what follows -- to another program, options included, or could.
var passers = []string{
	"npm", "npx", "pnpm", "yarn", "bun", "bunx", "cargo", "go", "dotnet", "uv", "uvx", "poetry", "pipx", "pdm", "hatch", "nix", "kubectl", "oc",
	"docker", "podman", "bwrap", "firejail", "ssh", "bazel", "perf", "valgrind", "strace", "ltrace", "gdb", "find", "toolhost", "tmux", "screen", "time",
	"doas", "toybox", "unbuffer", "catchsegv", "proxychains", "chroot", "taskset", "chrt", "faketime", "flock", "unshare", "nsenter", "systemd-run",
	"setpriv", "prlimit", "dbus-run-session", "xvfb-run", "runuser", "script", "watch", "parallel",
}

var (
	// versionForm is what distributions put behind a program's name: python3.12.
	versionForm    = lazy.Regexp(`[-_.]?[0-9]+(\.[0-9]+)*[a-z]?$`)
	assignmentForm = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)
	// parsedForm is an option of perl and ruby by which they read switches behind --.
	parsedForm = lazy.Regexp(`^-[A-Za-z]*s`)
)

// programName is a program's name without folder and version.
func programName(word string) string {
	name := strings.TrimSuffix(strings.ToLower(path.Base(word)), ".exe")
	return versionForm().ReplaceAllString(name, "")
}

// analyse finds code in the command line, and the -- that counts.
func (p *plan) analyse() {
	p.facts = make([]fact, len(p.words))
	if len(p.words) == 0 {
		return
	}
	start, code := p.unwrap(), len(p.words)
	for i, w := range p.words {
		text, literal := w.literal()
		if found, known := interpreters[programName(text)]; known && literal {
			at := p.findCode(i, found)
			if i == start {
				code = at
			} else if at < len(p.words) {
				p.facts[at].always = false // the word before may be an argument only
			}
		}
	}
	p.markEnds(start, code)
}

// markEnds finds the -- that the command at start takes for the end of its
// options: behind an interpreter's code, only the next word can be one.
func (p *plan) markEnds(start, code int) {
	if start >= len(p.words) || slices.Contains(passers, programName(p.words[start].prefix())) {
		return
	}
	for i := start + 1; i < min(code, len(p.words)); i++ {
		text, _ := p.words[i].literal()
		p.facts[i].ends = text == "--"
	}
	name := programName(p.words[start].prefix())
	parses := (name == "perl" || name == "ruby") && slices.ContainsFunc(p.words[start:min(code, len(p.words))], func(w word) bool { return parsedForm().MatchString(w.prefix()) })
	if behind := code + 1; behind < len(p.words) && !interpreters[name].passes && !parses {
		text, _ := p.words[behind].literal()
		p.facts[behind].ends = text == "--"
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

// wrapped finds the command that the wrapper at index runs.
func (p *plan) wrapped(index int) int {
	name := programName(p.words[index].prefix())
	ended, operand := false, name == "timeout" // which takes a time first
	for i := index + 1; i < len(p.words); i++ {
		w, head := p.words[i], p.words[i].prefix()
		switch {
		case !ended && head == "--" && w.fixed():
			ended = true
		case !ended && len(head) > 1 && head[0] == '-':
			if w.fixed() && slices.Contains(wrappers[name], head) {
				i++
			}
		case (name == "env" || name == "sudo") && assignmentForm().MatchString(head):
		case operand && !p.vanishes(w):
			operand = false
		case w.fixed():
			return i
		default:
			p.complain(argvPath(i), "%s stands where %s expects the command to run: write the command as it is", shown(p.spec.Argv[i]), shown(name))
			return len(p.words)
		}
	}
	return len(p.words)
}

// findCode checks the words of the interpreter at index, and returns the index of
// its code, or the number of words where it has no code.
func (p *plan) findCode(index int, found interpreter) int {
	name := programName(p.words[index].prefix())
	for i := index + 1; i < len(p.words); i++ {
		w := p.words[i]
		text, literal := w.literal()
		switch {
		case !literal && p.joined(w, found):
			p.refuse(i, name, found)
			return i
		case literal && found.option().MatchString(text):
		case slices.Contains(found.takes, text):
			i++
			continue
		case strings.HasPrefix(w.prefix(), "-m") && name == "python", !strings.HasPrefix(w.prefix(), "-") && !p.vanishes(w) && !p.guessed(i):
			return len(p.words) // a module or a script, whose own words follow
		default:
			continue
		}
		for i++; found.passes && i < len(p.words) && strings.HasPrefix(p.words[i].prefix(), "-"); i++ {
		}
		p.checkCode(i, name, found)
		return i
	}
	return len(p.words)
}

// guessed says whether the word may be the value of a long option before it.
func (p *plan) guessed(i int) bool {
	return strings.HasPrefix(p.words[i-1].prefix(), "--") && p.words[i-1].prefix() != "--"
}

// joined says whether a placeholder is a part of code in the option's own word.
// Behind "=" it may be all of the code.
func (p *plan) joined(w word, found interpreter) bool {
	head := w.prefix()
	if strings.HasSuffix(head, "=") && len(w.pieces) == 2 {
		return p.params[w.pieces[1].name].array && found.option().MatchString(head)
	}
	for end := 2; end <= len(head); end++ {
		if found.option().MatchString(head[:end]) {
			return true
		}
	}
	return false
}

// checkCode has a placeholder be all of the code, in every call.
func (p *plan) checkCode(i int, name string, found interpreter) {
	if i >= len(p.words) || p.words[i].fixed() {
		return
	}
	switch whole := p.words[i].whole(); {
	case !whole && p.words[i].when == "":
		p.refuse(i, name, found)
	case p.vanishes(p.words[i]):
		p.complain(argvPath(i), "%s may be none or several words, and so another value could stand where %s expects code: make it one required value", shown(p.spec.Argv[i]), name)
	default:
		p.facts[i] = fact{program: name, always: found.always}
	}
}

func (p *plan) refuse(i int, name string, found interpreter) {
	p.complain(argvPath(i), "%s puts a value into code for %s, and so the value would become code: %s; or make the placeholder the whole argument", shown(p.spec.Argv[i]), name, found.remedy)
}
