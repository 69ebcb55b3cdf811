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

// What a server's later list adds, of a tool or a prompt, is held back as well, and what
// was pinned stays as it is.
func TestWhatIsAddedIsHeldBack(t *testing.T) {
	entry := config.Tool{Name: "s", Type: config.TypeMCP}
	dir := t.TempDir()
	c := New(nil, &config.Loaded{Path: filepath.Join(dir, "toolhost.yaml"), Tools: []config.Tool{entry}}, Options{State: dir})
	lists := func(names ...string) []Tool {
		d := &supervisor.Description{Server: &pluginv1.Server{}}
		var tools []Tool
		for _, name := range names {
			own := &pluginv1.ToolDescription{Name: name}
			d.Tools = append(d.Tools, own)
			d.Server.Prompts = append(d.Server.Prompts, []byte(`{"name":"`+name+`"}`))
			tools = append(tools, Tool{own: name, pin: pins.Of(own), Entry: entry})
		}
		c.pin(entry, d)
		c.keepOffers(entry, d.Server)
		return c.hold(entry, tools)
	}
	lists("first")
	for range 2 { // a second list makes no pin of it either
		tools, one := lists("first", "added"), c.Servers()[0]
		if tools[0].Held != "" || !strings.Contains(tools[1].Held, "it was not there") {
			t.Errorf("tools: %q, %q", tools[0].Held, tools[1].Held)
		}
		if len(one.Offers.Prompts) != 1 || len(one.Held) != 1 || !strings.Contains(one.Held[0], "prompt added of s") {
			t.Errorf("prompts: %q, held back %q", one.Offers.Prompts, one.Held)
		}
	}
	file, _ := c.Pins(entry)
	if pinned, err := file.Read(); err != nil || len(pinned) != 2 {
		t.Errorf("pinned: %v, %v", pinned, err)
	}
}
