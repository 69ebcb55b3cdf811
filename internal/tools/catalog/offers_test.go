package catalog

import (
	"os"
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

// So are a server's instructions: they reach models as they are. A file of before they were
// pinned takes them up.
func TestChangedInstructionsAreHeldBack(t *testing.T) {
	entry := config.Tool{Name: "s", Type: config.TypeMCP}
	dir := t.TempDir()
	c := New(nil, &config.Loaded{Path: filepath.Join(dir, "toolhost.yaml"), Tools: []config.Tool{entry}}, Options{State: dir})
	says := func(instructions string) Server {
		o := &pluginv1.Server{Instructions: instructions, Resources: [][]byte{[]byte(`{"uri":"a://1"}`)}}
		c.pin(entry, &supervisor.Description{Tools: []*pluginv1.ToolDescription{{Name: "t"}}, Server: o})
		c.keepOffers(entry, o)
		return c.Servers()[0]
	}
	file, _ := c.Pins(entry)
	former := `{"schemaVersion": 1, "offers": true, "hints": true, "tools": {"t": {}}}`
	if err := os.MkdirAll(filepath.Dir(file.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file.Path(), []byte(former), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "", "first"} {
		if one := says(text); len(one.Held) != 0 || one.Offers.Instructions != text {
			t.Errorf("%q: %v", text, one)
		}
	}
	one := says("second")
	if len(one.Held) != 1 || !strings.Contains(one.Held[0], "instruction text of s") || one.Offers.Instructions != "" || c.held() != 1 {
		t.Errorf("offered: %v, held back: %q", one.Offers, one.Held)
	}
	if err := file.Accept(c.said["s"]); err != nil {
		t.Fatal(err)
	}
	if one := c.Servers()[0]; len(one.Held) != 0 || one.Offers.Instructions != "second" {
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
