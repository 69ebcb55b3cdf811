package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// word is a parsed template: pieces to be joined, or a conditional literal.
type word struct {
	pieces []piece
	// when names the parameter that a conditional literal depends on.
	when string
}

// piece is literal text, or a placeholder where name is set.
type piece struct {
	text, name string
	each       bool // name...
}

var (
	nameForm        = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	placeholderForm = lazy.Regexp(`^([A-Za-z_][A-Za-z0-9_-]{0,63})(\.\.\.|\?[^{}]*)?$`)
)

var errUnpaired = errors.New(`"}" has no "{" before it: write }} for a literal brace`)

// parseWord reads a template.
func parseWord(template string) (word, error) {
	var w word
	var literal strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			i = len(rest)
		}
		literal.WriteString(rest[:i])
		rest = rest[i:]
		switch {
		case rest == "":
		case strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}"):
			literal.WriteByte(rest[0])
			rest = rest[2:]
		case rest[0] == '}':
			return word{}, errUnpaired
		default:
			body, after, closed := strings.Cut(rest[1:], "}")
			if !closed || !placeholderForm().MatchString(body) {
				return word{}, fmt.Errorf("%s is not a placeholder such as {name}, {name...} or {name?--flag}: write {{ and }} for literal braces", shown(rest))
			}
			w.addLiteral(&literal)
			w.add(body)
			rest = after
		}
	}
	w.addLiteral(&literal)
	return w.settle()
}

func (w *word) addLiteral(literal *strings.Builder) {
	if literal.Len() > 0 {
		w.pieces = append(w.pieces, piece{text: literal.String()})
		literal.Reset()
	}
}

// add adds a placeholder; body is the text between its braces, checked
// before.
func (w *word) add(body string) {
	name, flag, conditional := strings.Cut(body, "?")
	if conditional {
		w.pieces = append(w.pieces, piece{text: flag})
		w.when = name
		return
	}
	name, each := strings.CutSuffix(name, "...")
	w.pieces = append(w.pieces, piece{name: name, each: each})
}

// settle checks the pieces against each other.
func (w *word) settle() (word, error) {
	each := 0
	for _, p := range w.pieces {
		if p.each {
			each++
		}
	}
	switch {
	case w.when != "" && len(w.pieces) != 1:
		return word{}, fmt.Errorf("{%s?...} must be the whole word", w.when)
	case w.when != "" && w.pieces[0].text == "":
		return word{}, fmt.Errorf("{%s?} gives no word: write it behind the question mark, as in {%s?--flag}", w.when, w.when)
	case each > 1:
		return word{}, errors.New("it has two arrays: a word can be repeated for one only")
	}
	return *w, nil
}

// literal is the text of a word without values; a conditional one counts.
func (w word) literal() (text string, ok bool) {
	for _, p := range w.pieces {
		if p.name != "" {
			return "", false
		}
		text += p.text
	}
	return text, true
}

// fixed says whether the word is the same in every call.
func (w word) fixed() bool {
	_, literal := w.literal()
	return literal && w.when == ""
}

// prefix is the literal text that the word begins with.
func (w word) prefix() string {
	if len(w.pieces) == 0 {
		return ""
	}
	return w.pieces[0].text
}

// whole says whether the word consists of one placeholder.
func (w word) whole() bool { return len(w.pieces) == 1 && w.pieces[0].name != "" }

// names are the parameters whose values the word holds.
func (w word) names() []string {
	var names []string
	for _, p := range w.pieces {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

const maxShownBytes = 80

// shown is a text as an error shows it: quoted, and cut if long.
func shown(text string) string {
	if len(text) > maxShownBytes {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(text[:maxShownBytes], ""))
	}
	return fmt.Sprintf("%q", text)
}
