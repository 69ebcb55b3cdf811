package command

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// pastedForm is what looks like a placeholder in a script; ${name} is the
// shell's.
var pastedForm = lazy.Regexp(`(^|[^$])(\{[A-Za-z_][A-Za-z0-9_-]*(\.\.\.|\?[^{}]*)?\})`)

// checkScript checks Argv as a script.
func (p *plan) checkScript() {
	if len(p.spec.Argv) != 1 {
		p.complain("argv", "a shell command is one script, not %d words: write it as one", len(p.spec.Argv))
		return
	}
	script := p.spec.Argv[0]
	switch {
	case strings.TrimSpace(script) == "":
		p.complain(argvPath(0), "the script is empty: write one")
	case strings.ContainsAny(script[:1], "-+"):
		p.complain(argvPath(0), "%s begins with %q, which sh would take for an option: put a space in front", shown(script), script[:1])
	}
	if pasted := pastedForm().FindStringSubmatch(script); pasted != nil {
		p.complain(argvPath(0), `%s looks like a placeholder, but values are never pasted into a script: declare a parameter and write "$name" for its value, or put spaces inside the braces if they are meant`, shown(pasted[2]))
	}
	p.checkVariables(script)
	p.checkText(argvPath(0), p.preamble(func(*param) bool { return true })+script)
}

// checkVariables compares the parameters with the script.
func (p *plan) checkVariables(script string) {
	arrays := 0
	for _, param := range p.order {
		used := regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(param.Name) + `($|[^A-Za-z0-9_])`)
		if param.array {
			arrays++
			used = regexp.MustCompile(`\$[@*]|\$\{[@*]|\$[1-9]|\$\{[1-9]|(^|[^A-Za-z0-9_])(shift|for)($|[^A-Za-z0-9_])`)
		}
		param.used = used.MatchString(script)
	}
	if arrays > 1 {
		p.complain("params", `%d parameters are arrays: a script has one "$@" only`, arrays)
	}
}

// shellArgv is the command of a script: sh -c SCRIPT sh VALUE ... ITEM ...
func (p *plan) shellArgv(found values) []string {
	preamble := p.preamble(func(param *param) bool { return found[param.Name] != nil })
	argv := []string{"sh", "-c", preamble + p.spec.Argv[0], "sh"}
	var items []string
	for _, param := range p.order {
		switch {
		case param.array:
			items = found[param.Name]
		case param.Name != p.stdin:
			argv = append(argv, found[param.Name]...)
		}
	}
	return append(argv, items...)
}

// preamble assigns the positional arguments to the variables that have a value,
// and leaves those of the array. It is made of names alone.
func (p *plan) preamble(given func(*param) bool) string {
	var names []string
	var assign strings.Builder
	count := 0
	for _, param := range p.order {
		if param.array || param.Name == p.stdin {
			continue
		}
		names = append(names, param.Name)
		if given(param) {
			count++
			fmt.Fprintf(&assign, "%s=${%d}; ", param.Name, count)
		}
	}
	if len(names) == 0 {
		return ""
	}
	// What the environment exports under a name must not pass a value on.
	return fmt.Sprintf("unset -v %s; %sshift %d; ", strings.Join(names, " "), assign.String(), count)
}
