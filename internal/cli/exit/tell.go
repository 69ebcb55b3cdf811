package exit

import (
	"errors"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
)

// maxLineRunes bounds a line of an error: names in it may be a plugin's.
const maxLineRunes = 2000

// Tell shows an error in the name of a program, on one line; those of
// errors.Join on a line each. Whatever is quoted in them forges no other line.
func Tell(w io.Writer, program string, err error) {
	for _, line := range lines(err) {
		fmt.Fprintf(w, "%s: %s\n", program, terminal.OneLine(text.Cut(line, maxLineRunes)))
	}
}

func lines(err error) (list []string) {
	if own, ok := err.(*Error); ok {
		err = own.Err
	}
	if err == nil {
		return nil
	}
	parts := joined(err)
	if parts == nil {
		return []string{err.Error()}
	}
	for _, part := range parts {
		list = append(list, lines(part)...)
	}
	return list
}

// joined are the errors of errors.Join. fmt.Errorf wraps several, too, but in a
// text of its own.
func joined(err error) []error {
	wrapper, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	list := wrapper.Unwrap()
	if same := errors.Join(list...); same == nil || same.Error() != err.Error() {
		return nil
	}
	return list
}
