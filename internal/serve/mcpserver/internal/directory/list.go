package directory

import (
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
)

// Prompt is a prompt of an entry's server.
type Prompt struct {
	// Entry is the entry's name, and Own the prompt's at its server.
	Entry, Own string
	// Raw is the prompt as clients get it, as JSON.
	Raw string
}

// Listing is what is offered: prompts by their names, and as JSON resources and templates of
// resources by the URIs that clients know.
type Listing struct {
	Prompts              map[string]Prompt
	Resources, Templates map[string]string
}

// List is what all servers offer, and what is not offered as its server has it.
func (d Directory) List() (l Listing, problems []error) {
	l = Listing{map[string]Prompt{}, map[string]string{}, map[string]string{}}
	for _, s := range d {
		for _, why := range s.Held {
			problems = append(problems, errors.New(why))
		}
		problems = append(problems, l.addPrompts(s)...)
		for _, raw := range s.Offers.GetResources() {
			uri := object.Text(raw, "uri")
			if uri == "" {
				problems = append(problems, fmt.Errorf("resource %q of %s (%s) is left out: it has no uri", object.Text(raw, "name"), s.Entry.Name, s.Entry.Source))
				continue
			}
			shown := d.shown(s, uri)
			if shown != uri {
				problems = append(problems, fmt.Errorf("resource %s of %s (%s) is offered as %s: another server has its URI", uri, s.Entry.Name, s.Entry.Source, shown))
			}
			l.Resources[shown] = string(object.With(sized(named(raw, uri)), "uri", shown))
		}
		for _, raw := range s.Offers.GetTemplates() {
			uri := object.Text(raw, "uriTemplate")
			if uri == "" {
				problems = append(problems, fmt.Errorf("resource template %q of %s (%s) is left out: it has no uriTemplate", object.Text(raw, "name"), s.Entry.Name, s.Entry.Source))
				continue
			}
			shown := d.shownTemplate(s, uri)
			if shown != uri {
				problems = append(problems, fmt.Errorf("resource template %s of %s (%s) is offered as %s: another server has one for the same URIs", uri, s.Entry.Name, s.Entry.Source, shown))
			}
			l.Templates[shown] = string(object.With(named(raw, uri), "uriTemplate", shown))
		}
	}
	return l, problems
}

func (l Listing) addPrompts(s *Server) (problems []error) {
	for _, raw := range s.Offers.GetPrompts() {
		raw = withoutNulls(raw)
		own := object.Text(raw, "name")
		name := own
		if prefix := s.Entry.MCP.Prefix; prefix != "" {
			name = prefix + mcpname.Separator + own
		}
		if own == "" {
			problems = append(problems, fmt.Errorf("a prompt of %s (%s) is left out: it has no name", s.Entry.Name, s.Entry.Source))
			continue
		}
		if first, taken := l.Prompts[name]; taken {
			problems = append(problems, fmt.Errorf("prompt %q of %s (%s) is left out: %s has its name already: give one of them another prefix", name, s.Entry.Name, s.Entry.Source, first.Entry))
			continue
		}
		l.Prompts[name] = Prompt{s.Entry.Name, own, string(object.With(raw, "name", name))}
	}
	return problems
}
