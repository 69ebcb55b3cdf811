package directory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func serverOf(name string, resources, templates []string) catalog.Server {
	o := &pluginv1.Server{Capabilities: []byte(`{"resources":{}}`)}
	for _, uri := range resources {
		o.Resources = append(o.Resources, []byte(`{"name":"r","uri":"`+uri+`"}`))
	}
	for _, uri := range templates {
		o.Templates = append(o.Templates, []byte(`{"name":"t","uriTemplate":"`+uri+`"}`))
	}
	return catalog.Server{Entry: config.Tool{Name: name}, Offers: o}
}

// Every URI that clients are given for a server's leads back to that server and to
// that URI, whatever the others have.
func TestURIsLeadBack(t *testing.T) {
	d := New([]catalog.Server{
		serverOf("a", []string{"test://x", "memo://1"}, []string{"file:///{path}"}),
		serverOf("b", []string{"test://x", "test://y"}, []string{"file:///{path}", "db://{table}/{row}"}),
		serverOf("c", []string{"note://z"}, nil),
	})
	for _, test := range []struct {
		server    int
		uri, want string
	}{
		{0, "test://x", "test://x"},
		{1, "test://x", "toolhost:b/test://x"},
		{1, "test://y", "test://y"},
		{0, "file:///etc", "file:///etc"},
		{1, "file:///etc", "toolhost:b/file:///etc"},
		{1, "db://t/1", "db://t/1"},
		{0, "memo://unlisted", "memo://unlisted"},
		{2, "memo://unlisted", "toolhost:c/memo://unlisted"},
		{2, "note://unlisted", "note://unlisted"},
		{2, "toolhost:a/test://x", "toolhost:c/toolhost:a/test://x"},
	} {
		s := d[test.server]
		shown := d.shown(s, test.uri)
		if shown != test.want {
			t.Errorf("%s of %s is shown as %s, want %s", test.uri, s.Entry.Name, shown, test.want)
		}
		if of, own := d.Owner(shown); of != s || own != test.uri {
			t.Errorf("%s leads to %s of %s", shown, own, of.Entry.Name)
		}
	}
}

// What no server has as a resource stays as it is in what a server says, if it is an address
// of the web or the server has none at all: an alias would only keep clients from opening it.
func TestURIsOfNoServer(t *testing.T) {
	without := catalog.Server{Entry: config.Tool{Name: "without"}, Offers: &pluginv1.Server{Capabilities: []byte(`{"tools":{}}`)}}
	alone := New([]catalog.Server{without})
	d := New([]catalog.Server{
		serverOf("a", []string{"file:///notes", "https://listed.example/x"}, []string{"repo://{name}"}),
		serverOf("b", []string{"memo://1"}, nil),
		without,
	})
	for _, test := range []struct {
		of        Directory
		server    int
		uri, want string
	}{
		{alone, 0, "file:///out.png", "file:///out.png"},
		{d, 2, "file:///out.png", "file:///out.png"},
		{d, 2, "https://example.com/x", "https://example.com/x"},
		{d, 2, "file:///notes", "toolhost:without/file:///notes"},
		{d, 2, "repo://x", "toolhost:without/repo://x"},
		{d, 2, "toolhost:a/file:///notes", "toolhost:without/toolhost:a/file:///notes"},
		{d, 1, "https://example.com/x", "https://example.com/x"},
		{d, 1, "https://listed.example/x", "toolhost:b/https://listed.example/x"},
		{d, 1, "file:///unlisted", "toolhost:b/file:///unlisted"},
	} {
		s := test.of[test.server]
		if shown := test.of.shown(s, test.uri); shown != test.want {
			t.Errorf("%s of %s is shown as %s, want %s", test.uri, s.Entry.Name, shown, test.want)
		}
	}
}

// What is made of a template leads back to its server, too, whatever its variables are called.
func TestTemplatesLeadBack(t *testing.T) {
	d := New([]catalog.Server{
		serverOf("a", nil, []string{"repo://{owner}/{name}", "file:///{+path}", "toolhost:b/odd://{x}"}),
		serverOf("b", []string{"repo://b/listed"}, []string{"repo://{org}/{repo}", "file:///docs/{page}", "db://{table}{?row*}", "odd://{x}"}),
	})
	listing, problems := d.List()
	templates := listing.Templates
	for _, test := range []struct{ template, made, entry, own string }{
		{"repo://{owner}/{name}", "repo://x/y", "a", "repo://x/y"},
		{"toolhost:b/repo://{org}/{repo}", "toolhost:b/repo://x/y", "b", "repo://x/y"},
		{"toolhost:b/file:///docs/{page}", "toolhost:b/file:///docs/x", "b", "file:///docs/x"},
		{"toolhost:a/toolhost:b/odd://{x}", "toolhost:a/toolhost:b/odd://1", "a", "toolhost:b/odd://1"},
		{"db://{table}{?row*}", "db://t?row=1", "b", "db://t?row=1"},
		{"odd://{x}", "odd://1", "b", "odd://1"},
	} {
		if of, own := d.Owner(test.made); templates[test.template] == "" || of.Entry.Name != test.entry || own != test.own {
			t.Errorf("%s leads to %s of %s; listed are %v", test.made, own, of.Entry.Name, templates)
		}
	}
	if len(templates) != 7 || len(problems) != 3 {
		t.Errorf("%d templates, %v", len(templates), problems)
	}
}

// What has no name, or no URI, is left out, and the warning says that.
func TestEntriesWithoutNames(t *testing.T) {
	s := serverOf("a", []string{""}, []string{""})
	s.Offers.Prompts = [][]byte{[]byte(`{"title":"t"}`), []byte(`{"name":5}`)}
	listing, problems := New([]catalog.Server{s}).List()
	if len(listing.Prompts)+len(listing.Resources)+len(listing.Templates) > 0 {
		t.Errorf("%+v", listing)
	}
	said := fmt.Sprint(problems)
	for _, part := range []string{`resource "r" of a`, "it has no uri", `resource template "t" of a`, "it has no uriTemplate", "a prompt of a", "it has no name"} {
		if !strings.Contains(said, part) {
			t.Errorf("no %s in %s", part, said)
		}
	}
}

// A resource whose size is written as a float is listed, with it if it is whole.
func TestSizesAreWhole(t *testing.T) {
	for size, want := range map[string]string{`1024.0`: `1024`, `1e3`: `1000`, `9007199254740993`: `9007199254740993`, `1.5`: ``, `"12"`: ``, `1e300`: ``, `null`: ``} {
		s := serverOf("a", nil, nil)
		s.Offers.Resources = [][]byte{[]byte(`{"name":"r","uri":"x:1","size":` + size + `}`)}
		listing, _ := New([]catalog.Server{s}).List()
		fields := object.Of([]byte(listing.Resources["x:1"]))
		if got := string(fields["size"]); got != want || fields == nil || json.Unmarshal([]byte(listing.Resources["x:1"]), new(mcpsdk.Resource)) != nil {
			t.Errorf("%s: %s", size, listing.Resources["x:1"])
		}
	}
}
