package catalog

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pins"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// A prompt or a resource template that says something else than what was pinned is
// not among a server's offers until it is accepted.
func TestChangedOffersAreHeldBack(t *testing.T) {
	entry := config.Tool{Name: "s", Type: config.TypeMCP}
	dir := t.TempDir()
	c := New(nil, &config.Loaded{Path: filepath.Join(dir, "toolhost.yaml"), Tools: []config.Tool{entry}}, Options{State: dir})
	says := func(description string) *pluginv1.Server {
		o := &pluginv1.Server{
			Instructions: "i", Resources: [][]byte{[]byte(`{"uri":"a://1"}`)}, Templates: [][]byte{[]byte(`{"uriTemplate":"a://{x}","name":"t"}`)},
			Prompts: [][]byte{[]byte(`{"name":"same"}`), []byte(`{"name":"p","description":"` + description + `"}`)},
		}
		c.pin(entry, &supervisor.Description{Server: o})
		c.keepOffers(entry, o)
		return o
	}
	says("first")
	if one := c.Servers()[0]; len(one.Held) != 0 || len(one.Offers.Prompts) != 2 {
		t.Fatalf("at first: %v", one)
	}
	now := says("second")
	one := c.Servers()[0]
	if len(one.Held) != 1 || !strings.Contains(one.Held[0], "prompt p of s") || !strings.Contains(one.Held[0], "another description") {
		t.Errorf("held back: %q", one.Held)
	}
	if o := one.Offers; len(o.Prompts) != 1 || len(o.Templates) != 1 || len(o.Resources) != 1 || o.Instructions != "i" || c.held() != 1 {
		t.Errorf("offered: %v", o)
	}
	file, _ := c.Pins(entry)
	if err := file.Accept(pins.OfOffers(now)); err != nil {
		t.Fatal(err)
	}
	if one := c.Servers()[0]; len(one.Held) != 0 || len(one.Offers.Prompts) != 2 {
		t.Errorf("accepted: %v", one)
	}
}
