package prepare

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// checkTexts refuses what no message, environment or command line can hold, while it can
// still be named.
func (n *preparation) checkTexts() error {
	r := n.Request
	if err := r.Check(); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonCall, err)
	}
	for _, entry := range r.Env {
		if err := checkVariable(entry); err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonCall, err)
		}
	}
	args := r.Tool.Args
	if r.Command != nil {
		args = r.Command.Argv
	}
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonCommand, fmt.Errorf("the argument %q contains a NUL character, which no command line can carry: leave it out", arg))
		}
	}
	return nil
}

// checkVariable names no value, which may be secret.
func checkVariable(entry string) error {
	name, value, ok := strings.Cut(entry, "=")
	switch {
	case !ok || name == "":
		return fmt.Errorf("an entry of its Env, %q, is not KEY=VALUE: give the variable a name and a value", name)
	case strings.ContainsRune(name, 0) || strings.ContainsRune(value, 0):
		return fmt.Errorf("the variable %q of its Env contains a NUL character, which no environment can carry: leave it out", name)
	}
	return nil
}
