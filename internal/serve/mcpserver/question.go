package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/terminal"
)

// All in characters: of arguments that are shown whole; of the beginning and the
// end of a string in longer ones; of all that is shown of these.
const (
	maxWhole     = 8000
	keptOfString = 200
	maxInPart    = 16_000
)

// message is a question as a client's human reads it. What a tool asks is as the tool has
// it: clients make harmless what they show. Of long arguments all is shown but the middle of
// long strings: nothing can hide behind much text.
func message(i api.Interaction) string {
	if !terminal.IsApproval(i) {
		return terminal.Asking(i, i.Prompt)
	}
	arguments := i.Arguments
	i.Arguments = nil
	question := terminal.Question(i)
	switch n := utf8.RuneCount(arguments); {
	case n == 0:
		return question
	case n <= maxWhole:
		return question + "  arguments  " + terminal.OneLine(string(arguments)) + "\n"
	default:
		return question + fmt.Sprintf("  arguments  of %d characters, shown in part: %s\n", n, shorten(arguments))
	}
}

var stringLiteral = lazy.Regexp(`"(?:[^"\\]|\\.)*"`)

// shorten takes the middle out of long strings, and then out of it all. What is
// said about it stands outside of the quotes, where arguments cannot say it.
func shorten(arguments json.RawMessage) string {
	short := stringLiteral().ReplaceAllFunc(arguments, func(literal []byte) []byte {
		var text string
		if len(literal) <= 2*keptOfString || json.Unmarshal(literal, &text) != nil {
			return literal
		}
		runes := []rune(text)
		if len(runes) <= 3*keptOfString {
			return literal
		}
		head, tail := runes[:keptOfString], runes[len(runes)-keptOfString:]
		return fmt.Appendf(nil, "%s …(%d characters not shown)… %s", quote(head), len(runes)-2*keptOfString, quote(tail))
	})
	runes := []rune(string(short))
	if len(runes) <= maxInPart {
		return terminal.OneLine(string(short))
	}
	const half = maxInPart / 2
	head, tail := string(runes[:half]), string(runes[len(runes)-half:])
	return fmt.Sprintf("%s\n  …(%d CHARACTERS NOT SHOWN: do not allow what you cannot judge)…\n  %s", terminal.OneLine(head), len(runes)-2*half, terminal.OneLine(tail))
}

// quote writes JSON that reads like the text.
func quote(text []rune) []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(string(text)) // no string fails
	return bytes.TrimSpace(b.Bytes())
}
