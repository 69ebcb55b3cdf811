package budget

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/internal/text"
)

const maxWarningRunes = 400

// warnings collects one-line notes on what became of a value that somebody asked for.
type warnings []string

func (w *warnings) addf(format string, args ...any) {
	*w = append(*w, oneLine(fmt.Sprintf(format, args...)))
}

// oneLine keeps a warning to one bounded line without control characters: details
// may come from a tool or a model.
func oneLine(s string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return text.Cut(line, maxWarningRunes)
}
