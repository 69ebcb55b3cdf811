// Package exit is how the commands end: an exit code, and at most one error to
// be shown.
package exit

import (
	"errors"
	"fmt"
)

// Exit codes of toolhost and toolsdk. 124 to 127 and what is above 128 have the
// meaning that timeout(1), env(1) and shells give them.
const (
	OK         = 0
	Failed     = 1
	Usage      = 2 // usage or config, also what is not a tool
	Headless   = 4 // a call needed a human, and there was none
	Timeout    = 124
	Host       = 125 // the host itself failed
	NotExec    = 126 // the command is not executable
	NotFound   = 127 // the command was not found
	SignalBase = 128 // plus the signal that a command died of
	Aborted    = 130
)

// An Error ends the command with a code. Err is what is shown; nil if all has
// been said already.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// With ends the command with a code, and shows err unless that is nil.
func With(code int, err error) error { return &Error{code, err} }

// Usagef is an error of usage.
func Usagef(format string, args ...any) error { return With(Usage, fmt.Errorf(format, args...)) }

// Of tells how err ends the command; of joined errors the first decides. Errors
// that no command made its own are errors of usage: they come from the parser.
func Of(err error) *Error {
	if err == nil {
		return &Error{Code: OK}
	}
	own, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return &Error{Usage, err}
	case joined(err) != nil:
		return &Error{own.Code, err}
	}
	return own
}
