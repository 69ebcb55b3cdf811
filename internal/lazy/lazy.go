// Package lazy puts off what takes time to make until it is first used: a run of a command uses little of the code that is linked into it.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression of a package. It may be called from any goroutine, and panics if the expression is malformed.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
