package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Build renders a call's arguments, a JSON object, into the command. An error
// is an *ArgumentError, except where s has problems.
func (s Spec) Build(arguments json.RawMessage) (Built, error) {
	p := compile(s)
	if len(p.problems) > 0 {
		return Built{}, fmt.Errorf("the command is misconfigured: %s", p.problems[0])
	}
	found, err := p.arguments(arguments)
	if err != nil {
		return Built{}, err
	}
	var built Built
	if s.Shell {
		built.Argv, err = p.buildScript(found)
	} else {
		built.Argv, err = p.buildArgv(found)
	}
	if err != nil {
		return Built{}, err
	}
	if text := found[p.stdin]; len(text) > 0 {
		built.Stdin = []byte(text[0])
	}
	return built, nil
}

func (p *plan) buildArgv(found values) ([]string, error) {
	var argv []string
	ended, total := false, 0
	for i, w := range p.words {
		for _, r := range p.render(w, found) {
			if err := p.checkRendered(i, r, ended); err != nil {
				return nil, err
			}
			if total += len(r.text) + wordCost; total > maxArgvBytes {
				return nil, &ArgumentError{p.largest(found), fmt.Sprintf("makes the command longer than %d bytes in all: give less", maxArgvBytes)}
			}
			argv = append(argv, r.text)
			ended = ended || p.facts[i].ends
		}
	}
	return argv, nil
}

// rendered is a word of a call. first names the parameter that its beginning
// comes from, if any, and longest the one that most of it comes from.
type rendered struct {
	text           string
	first, longest string
}

// render is what a template gives: no word, one, or one for each item.
func (p *plan) render(w word, found values) []rendered {
	if w.when != "" {
		if !p.holds(w.when, found) {
			return nil
		}
		return []rendered{{text: w.pieces[0].text}}
	}
	count := 1
	for _, piece := range w.pieces {
		texts, given := found[piece.name]
		if piece.name != "" && !given {
			return nil
		}
		if param := p.params[piece.name]; param != nil && param.array {
			count = len(texts)
		}
	}
	words := make([]rendered, count)
	for item := range words {
		words[item] = p.renderOne(w, found, item)
	}
	return words
}

func (p *plan) renderOne(w word, found values, item int) rendered {
	var r rendered
	var text strings.Builder
	longest := 0
	for _, piece := range w.pieces {
		part := piece.text
		if param := p.params[piece.name]; param != nil {
			texts := found[piece.name]
			part = texts[min(item, len(texts)-1)]
			if text.Len() == 0 && part != "" {
				r.first = piece.name
			}
		}
		if piece.name != "" && len(part) >= longest {
			r.longest, longest = piece.name, len(part)
		}
		text.WriteString(part)
	}
	r.text = text.String()
	return r
}

// holds says whether a condition is met.
func (p *plan) holds(name string, found values) bool {
	texts := found[name]
	if param := p.params[name]; !param.array && param.kind == TypeBoolean {
		return slices.Equal(texts, []string{"true"})
	}
	return len(texts) > 0
}

// checkRendered keeps a value from being an option, from taking the next word
// for an option's value, and from being too long.
func (p *plan) checkRendered(i int, r rendered, ended bool) error {
	w, prefix := p.words[i], p.words[i].prefix()
	if w.when != "" || w.fixed() {
		return nil
	}
	if err := checkSize(r.longest, r.text); err != nil {
		return err
	}
	if prefix != "" {
		if r.text == prefix && short(prefix) && !ended {
			return &ArgumentError{r.longest, fmt.Sprintf("is empty, and so %s would take the word after it: give a value or leave it out", prefix)}
		}
		return nil
	}
	if !strings.HasPrefix(r.text, "-") || ended || p.facts[i].always {
		return nil
	}
	if r.first == "" {
		return &ArgumentError{r.longest, fmt.Sprintf("is empty, and so the word %s would be an option: give a value", shown(r.text))}
	}
	if p.params[r.first].trusted() {
		return nil
	}
	return p.params[r.first].dashed(r.text, p.facts[i].program)
}

func (p *param) dashed(text, program string) error {
	remedy := "begin it with something else, a path with ./; the tool's owner can permit it with allowDash: true"
	switch {
	case p.numeric():
		remedy = "give none below 0; the tool's owner can permit them with allowDash: true"
	case program != "":
		remedy = "put a space in front of it"
	}
	return &ArgumentError{p.Name, fmt.Sprintf(`is %s: what begins with "-" could be taken for an option: %s`, shown(text), remedy)}
}

func checkSize(name, text string) error {
	if len(text) <= maxWordBytes {
		return nil
	}
	return &ArgumentError{name, fmt.Sprintf("makes a word of %d bytes, one may have %d: give less, or let the tool's owner pass it on stdin", len(text), maxWordBytes)}
}

// largest names the parameter with the most bytes.
func (p *plan) largest(found values) string {
	name, most := "", -1
	for _, param := range p.order {
		total := 0
		for _, text := range found[param.Name] {
			total += len(text) + wordCost
		}
		if total > most && len(found[param.Name]) > 0 {
			name, most = param.Name, total
		}
	}
	return name
}

// buildScript holds values to the same rules: the script will use most of them
// as words of commands.
func (p *plan) buildScript(found values) ([]string, error) {
	total := 0
	for _, param := range p.order {
		if param.Name == p.stdin {
			continue
		}
		for _, text := range found[param.Name] {
			if strings.HasPrefix(text, "-") && !param.trusted() {
				return nil, param.dashed(text, "")
			}
			if err := checkSize(param.Name, text); err != nil {
				return nil, err
			}
			total += len(text) + wordCost
		}
	}
	if total+len(p.spec.Argv[0]) > maxArgvBytes {
		return nil, &ArgumentError{p.largest(found), fmt.Sprintf("makes the command longer than %d bytes in all: give less", maxArgvBytes)}
	}
	return p.shellArgv(found), nil
}
