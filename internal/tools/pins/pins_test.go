package pins

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func said(schema string) *pluginv1.ToolDescription {
	return &pluginv1.ToolDescription{
		Name: "read", Title: "Read", Description: "Reads.", InputSchema: []byte(schema),
		Annotations: &pluginv1.Annotations{ReadOnly: new(true)},
	}
}

const schema = `{"type":"object","properties":{"a":{"type":"integer","maximum":12345678901234567890},"b":{}}}`

// All that a model decides by counts, and how it is written does not.
func TestChanges(t *testing.T) {
	before := Of(said(schema))
	if c := Changes(before, Of(said(`{ "properties": {"b": {}, "a": {"maximum": 12345678901234567890, "type": "integer"}}, "type": "object" }`))); len(c) != 0 {
		t.Errorf("another order is a change: %v", c)
	}
	for part, change := range map[string]func(*pluginv1.ToolDescription){
		"title":           func(d *pluginv1.ToolDescription) { d.Title = "" },
		"description":     func(d *pluginv1.ToolDescription) { d.Description += " " },
		"inputSchema":     func(d *pluginv1.ToolDescription) { d.InputSchema = []byte(strings.Replace(schema, "890", "891", 1)) },
		"outputSchema":    func(d *pluginv1.ToolDescription) { d.OutputSchema = []byte(`{}`) },
		"readOnlyHint":    func(d *pluginv1.ToolDescription) { d.Annotations = nil },
		"destructiveHint": func(d *pluginv1.ToolDescription) { d.Annotations.Destructive = new(false) },
		"idempotentHint":  func(d *pluginv1.ToolDescription) { d.Annotations.Idempotent = new(true) },
		"exclusive":       func(d *pluginv1.ToolDescription) { d.Concurrency = pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE },
		"openWorldHint":   func(d *pluginv1.ToolDescription) { d.Annotations.OpenWorld = new(true) },
	} {
		d := said(schema)
		change(d)
		if c := Changes(before, Of(d)); len(c) != 1 || c[0].Part != part {
			t.Errorf("%s: %v", part, c)
		}
	}
}

// What is kept is what was said, of one configuration's server; the first wins.
func TestFiles(t *testing.T) {
	state := t.TempDir()
	file := In(state, "/a/toolhost.yaml", "s")
	if _, err := file.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if file == In(state, "/b/toolhost.yaml", "s") || file == In(state, "/a/toolhost.yaml", "t") {
		t.Error("two servers have one file")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := file.First(map[string]Tool{"read": Of(said(schema))}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := file.First(map[string]Tool{}); err != nil {
		t.Fatal(err)
	}
	got, err := file.Read()
	if want := map[string]Tool{"read": Of(said(schema))}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v", err, got)
	}
	if err := file.Accept(map[string]Tool{"other": {}}); err != nil {
		t.Fatal(err)
	}
	if got, err = file.Read(); err != nil || len(got) != 1 || got["read"].Title != "" {
		t.Errorf("%v, %+v", err, got)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "pins", ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestBrokenFiles(t *testing.T) {
	file := In(t.TempDir(), "c", "s")
	if err := file.Accept(nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "{", `{}`, `{"schemaVersion":2,"tools":{}}`, `[]`} {
		if err := os.WriteFile(file.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Read(); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Prompts and resource templates are pinned beside the tools, also in a file that is
// from before they were; a later change of them shows.
func TestOffersArePinned(t *testing.T) {
	offers := func(description string) *pluginv1.Server {
		return &pluginv1.Server{
			Prompts:   [][]byte{[]byte(`{"name":"p","description":"` + description + `","arguments":[{"required":true,"name":"x"}],"_meta":{"a":1}}`)},
			Templates: [][]byte{[]byte(`{"uriTemplate":"a://{x}","name":"t"}`)},
		}
	}
	f := In(t.TempDir(), "toolhost.yaml", "files")
	old := `{"schemaVersion":1,"config":"toolhost.yaml","name":"files","tools":{"read":{"description":"d"}}}`
	if err := os.MkdirAll(filepath.Dir(f.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, description := range []string{"first", "second"} { // the second is not taken
		if err := f.Extend(OfOffers(offers(description))); err != nil {
			t.Fatal(err)
		}
	}
	pinned, err := f.Read()
	if err != nil || len(pinned) != 3 || pinned["read"].Description != "d" || pinned["resource template a://{x}"].Title != "t" {
		t.Fatalf("%v, %v", pinned, err)
	}
	key, now := OfPrompt(offers("second").Prompts[0])
	if list := Changes(pinned[key], now); key != "prompt p" || len(list) != 1 || list[0] != (Change{"description", "first", "second"}) {
		t.Errorf("%q: %v", key, list)
	}
}

// Of a file that is from before hints of false were pinned, also one that was extended since,
// one of false is as an absent one. Else it is a change.
func TestHintsOfFalse(t *testing.T) {
	f := In(t.TempDir(), "toolhost.yaml", "s")
	now := Of(said(schema))
	now.OpenWorld = new(false)
	changes := func() []Change {
		t.Helper()
		pinned, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		return Changes(pinned["t"], now)
	}
	if err := f.First(map[string]Tool{"t": Of(said(schema))}); err != nil {
		t.Fatal(err)
	}
	if c := changes(); len(c) != 1 || c[0].Part != "openWorldHint" || c[0].After != "false" {
		t.Errorf("%v", c)
	}
	text, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	former := strings.NewReplacer(`"hints": true`, `"hints": false`, `"offers": true`, `"offers": false`).Replace(string(text))
	if err := os.WriteFile(f.Path(), []byte(former), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := changes(); len(c) != 0 {
		t.Errorf("of a former file: %v", c)
	}
	if err := f.Extend(nil); err != nil {
		t.Fatal(err)
	}
	if c := changes(); len(c) != 0 {
		t.Errorf("of one that was extended: %v", c)
	}
	some, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	some["other"] = now
	if err := f.Accept(some); err != nil {
		t.Fatal(err)
	}
	if c := changes(); len(c) != 0 {
		t.Errorf("where another one alone was accepted: %v", c)
	}
	if err := f.Accept(map[string]Tool{"t": now}); err != nil {
		t.Fatal(err)
	}
	if c := changes(); len(c) != 0 {
		t.Errorf("accepted: %v", c)
	}
}
