// Package directory is what wrapped MCP servers offer beside their tools, by the names and
// URIs that clients know it by. Names are kept apart by the prefixes of their entries. URIs
// stay as they are: of two servers with the same one the first keeps it, and the others' have
// aliases, which lead back.
package directory

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// Directory has servers in the order of the file. It does not change, nor do they.
type Directory []*Server

// Server is one server.
type Server struct {
	catalog.Server
	uris      map[string]bool
	templates []*uritemplate.Template
}

// New makes the directory of servers.
func New(servers []catalog.Server) (d Directory) {
	for _, one := range servers {
		d = append(d, newServer(one))
	}
	return d
}

func newServer(one catalog.Server) *Server {
	s := &Server{Server: one, uris: map[string]bool{}}
	for _, raw := range one.Offers.GetResources() {
		if uri := object.Text(raw, "uri"); uri != "" {
			s.uris[uri] = true
		}
	}
	for _, raw := range one.Offers.GetTemplates() {
		if t, err := uritemplate.New(object.Text(raw, "uriTemplate")); err == nil {
			s.templates = append(s.templates, t)
		}
	}
	return s
}

// Of is an entry's server; nil if it has none.
func (d Directory) Of(entry string) *Server {
	if i := slices.IndexFunc(d, func(s *Server) bool { return s.Entry.Name == entry }); i >= 0 {
		return d[i]
	}
	return nil
}

// Owner is the server that a URI of clients' is read from, and its own URI: nil if
// there is no server at all. A URI that nobody lists is the first server's that has
// others of its scheme, or else the first one's.
func (d Directory) Owner(uri string) (*Server, string) {
	if entry, own, is := ofAlias(uri); is {
		if s := d.Of(entry); s != nil {
			return s, own
		}
	}
	if s := d.holder(uri); s != nil {
		return s, uri
	}
	s := d.first(func(s *Server) bool { return s.hasScheme(uri) }, (*Server).hasResources)
	if s == nil {
		return nil, ""
	}
	return s, uri
}

// holder is the server that lists a URI, or has a template that leads to it; nil if none does.
func (d Directory) holder(uri string) *Server {
	return d.first(
		func(s *Server) bool { return s.uris[uri] },
		func(s *Server) bool { return s.hasTemplate(uri) },
		func(s *Server) bool {
			return slices.ContainsFunc(s.templates, func(t *uritemplate.Template) bool { return t.Regexp().MatchString(uri) })
		},
	)
}

// first is the first server that fits, by the first of these that any fits; nil if none does.
func (d Directory) first(fits ...func(*Server) bool) *Server {
	for _, one := range fits {
		if i := slices.IndexFunc(d, one); i >= 0 {
			return d[i]
		}
	}
	return nil
}

// hasTemplate says whether a text is a template of the server, rather than a URI.
func (s *Server) hasTemplate(text string) bool {
	return slices.ContainsFunc(s.templates, func(t *uritemplate.Template) bool { return t.Raw() == text })
}

func (s *Server) hasScheme(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	for own := range s.uris {
		if strings.HasPrefix(own, scheme+":") {
			return true
		}
	}
	return slices.ContainsFunc(s.templates, func(t *uritemplate.Template) bool { return strings.HasPrefix(t.Raw(), scheme+":") })
}

func (s *Server) hasResources() bool {
	var declared struct{ Resources *struct{} }
	return json.Unmarshal(s.Offers.GetCapabilities(), &declared) == nil && declared.Resources != nil
}

// Links is how the URIs of an entry's server are written for clients; nil for an entry
// without one.
func (d Directory) Links(entry string) func(uri string) string {
	s := d.Of(entry)
	if s == nil {
		return nil
	}
	return func(uri string) string { return d.shown(s, uri) }
}

// shown is what clients know a server's URI by: its own, if that leads to the server or is
// not to be read from any.
func (d Directory) shown(s *Server, uri string) string {
	if of, own := d.Owner(uri); uri == "" || of == s && own == uri || d.isOutside(s, uri) {
		return uri
	}
	return aliasOf(s.Entry.Name, uri)
}

// isOutside says of a URI in what a server has sent that nobody has it as a resource: it is
// an address of the web, which clients open themselves, or the server has no resources.
func (d Directory) isOutside(s *Server, uri string) bool {
	if _, _, is := ofAlias(uri); is || d.holder(uri) != nil {
		return false
	}
	return !s.hasResources() || strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}

// shownTemplate is what clients know a server's template by: its own text, if that and what
// is made of it lead to the server.
func (d Directory) shownTemplate(s *Server, text string) string {
	shown := d.shown(s, text)
	t, err := uritemplate.New(text)
	if err != nil {
		return shown
	}
	values := uritemplate.Values{}
	for _, name := range t.Varnames() {
		values.Set(name, uritemplate.String("toolhost"))
	}
	if made, err := t.Expand(values); err == nil && d.shown(s, made) != made {
		return aliasOf(s.Entry.Name, text)
	}
	return shown
}
