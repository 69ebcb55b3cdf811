package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// path leads to a part of a value: nodes[1].sub.a, or "" for all of it.
type path string

var plainName = lazy.Regexp(`^[A-Za-z_$][A-Za-z0-9_$-]{0,63}$`)

func (p path) property(name string) path {
	switch {
	case !plainName().MatchString(name):
		return p + path("["+quote(name)+"]")
	case p == "":
		return path(name)
	}
	return p + "." + path(name)
}

func (p path) item(i int) path { return p + path("["+strconv.Itoa(i)+"]") }

// maxPathBytes bounds a path in a message.
const maxPathBytes = 240

// says puts a path before what is wrong there.
func (p path) says(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if p == "" {
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("%s: %s", ends(string(p), maxPathBytes), text)
}

// ends keeps both ends of what is too long.
func ends(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	half := maxBytes / 2
	return strings.ToValidUTF8(text[:half], "") + "…" + strings.ToValidUTF8(text[len(text)-half:], "")
}
