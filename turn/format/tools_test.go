package format

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestTools(t *testing.T) {
	tools := []Tool{
		{
			Name: "search", Title: "Search", Description: "Finds lines <by pattern> & more.\x00", ReadOnly: new(true), OpenWorld: new(false),
			InputSchema:  json.RawMessage(`{ "type": "object", "required": ["pattern"], "properties": {"pattern": {"type": "string"}} }`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"matches":{"type":"array"}}}`),
		},
		{Name: "session_status", Title: "The session's status", OutputSchema: json.RawMessage(`{"type":"array"}`)},
	}
	var files []txtar.File
	for _, p := range providers {
		raw, err := p.Tools(tools)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, txtar.File{Name: p.Name() + ".json", Data: pretty(t, raw)})
	}
	golden(t, filepath.Join("testdata", "tools.txtar"), files...)
}

func TestToolsThatAnAPIRefuses(t *testing.T) {
	object := func(rest string) json.RawMessage { return json.RawMessage(`{"type":"object"` + rest + `}`) }
	for name, c := range map[string]struct {
		tools []Tool
		want  []string
		mcp   bool // refuses it too
	}{
		"names":     {[]Tool{{Name: "a b"}, {Name: "ok"}, {Name: ""}, {Name: "x\n"}}, []string{`"a b"`, `""`, `"x\n"`, "letters, digits"}, true},
		"dots":      {[]Tool{{Name: "fs.read"}}, []string{`"fs.read"`, "1 to 64"}, false},
		"long":      {[]Tool{{Name: strings.Repeat("x", 65)}}, []string{"1 to 64"}, false},
		"very long": {[]Tool{{Name: strings.Repeat("x", 129)}}, []string{"1 to "}, true},
		"twice":     {[]Tool{{Name: "a"}, {Name: "a"}}, []string{`two tools have the name "a"`}, true},
		"no JSON":   {[]Tool{{Name: "a", InputSchema: json.RawMessage(`{`)}}, []string{`"a" is not valid JSON`}, true},
		"deep":      {[]Tool{{Name: "a", InputSchema: json.RawMessage(strings.Repeat(`[`, 10_000))}}, []string{"256 levels"}, true},
		"no object": {[]Tool{{Name: "a", InputSchema: json.RawMessage(`{"type":"string"}`)}}, []string{`"type": "object"`}, true},
		"boolean":   {[]Tool{{Name: "a", InputSchema: json.RawMessage(`true`)}}, []string{`"type": "object"`}, true},
		"oneOf":     {[]Tool{{Name: "a", InputSchema: object(`,"oneOf":[{}]`)}}, []string{`"a" has oneOf at its top`}, false},
	} {
		for _, p := range providers {
			_, err := p.Tools(c.tools)
			if p == (mcp{}) && !c.mcp {
				if err != nil {
					t.Errorf("%s, mcp: %v", name, err)
				}
				continue
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s: %v, want %q", name, p.Name(), err, want)
				}
			}
		}
	}
}

func TestNoTools(t *testing.T) {
	for _, p := range providers {
		raw, err := p.Tools(nil)
		if err != nil || string(raw) != `[]` && string(raw) != `{"tools":[]}` {
			t.Errorf("%s: %s, %v", p.Name(), raw, err)
		}
	}
}
