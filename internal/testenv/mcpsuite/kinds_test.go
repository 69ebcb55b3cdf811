package mcpsuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// peer is a client that reads what is on the wire.
type peer struct {
	t                          *testing.T
	address, revision, session string
	ids                        atomic.Int64
}

func (p *peer) stateless() bool { return p.revision >= "2026-07-28" }

// greet begins as the revision has it, and gives what the server says of itself.
func (p *peer) greet() map[string]any {
	if p.stateless() {
		return p.ask("server/discover", map[string]any{})
	}
	said := p.ask("initialize", map[string]any{"protocolVersion": p.revision, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "peer", "version": "1"}})
	p.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}, "", "")
	return said
}

// ask makes a request and gives its result.
func (p *peer) ask(method string, params map[string]any) map[string]any {
	p.t.Helper()
	answer := p.answered(method, params)
	result, ok := answer["result"].(map[string]any)
	if !ok {
		p.t.Fatalf("%s is answered %v", method, answer)
	}
	return result
}

// answered makes a request and gives the whole answer, an error too.
func (p *peer) answered(method string, params map[string]any) map[string]any {
	p.t.Helper()
	if p.stateless() {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		maps.Copy(meta, map[string]any{
			"io.modelcontextprotocol/protocolVersion": p.revision, "io.modelcontextprotocol/clientInfo": map[string]any{"name": "peer", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		})
		params["_meta"] = meta
	}
	name, _ := params["name"].(string)
	if name == "" {
		name, _ = params["uri"].(string)
	}
	return p.send(map[string]any{"jsonrpc": "2.0", "id": p.ids.Add(1), "method": method, "params": params}, method, name)
}

func (p *peer) send(message map[string]any, method, name string) map[string]any {
	p.t.Helper()
	raw, err := json.Marshal(message)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(wait.Context(p.t), http.MethodPost, p.address, bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": p.session,
		"Mcp-Protocol-Version": p.revision, "Mcp-Method": method, "Mcp-Name": name,
	} {
		ofRequest := key == "Mcp-Method" || key == "Mcp-Name" // which clients of 2026-07-28 say in headers, too
		if value != "" && (p.stateless() || !ofRequest && (!strings.HasPrefix(key, "Mcp-") || p.session != "")) {
			r.Header.Set(key, value)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		p.session = id
	}
	for line := range strings.Lines(string(body)) {
		rest, data := strings.CutPrefix(line, "data: ")
		if !data && !strings.HasPrefix(line, "{") || strings.TrimSpace(rest) == "" {
			continue
		}
		if m, _ := decoded(p.t, rest).(map[string]any); m["id"] != nil {
			return m
		}
	}
	if method != "" {
		p.t.Fatalf("%s: %s: %.2000s", method, response.Status, body)
	}
	return nil
}

// shape is JSON as one text, to be compared.
func shape(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// in finds the element of a list that has this name (or URI).
func in(t *testing.T, result map[string]any, list, name string) map[string]any {
	t.Helper()
	all, _ := result[list].([]any)
	for _, one := range all {
		entry, _ := one.(map[string]any)
		if entry["name"] == name || entry["uri"] == name || entry["uriTemplate"] == name {
			return entry
		}
	}
	t.Errorf("%s has no %s: %s", list, name, shape(t, result))
	return map[string]any{}
}

// TestEveryKind has a server with everything that a server may have wrapped, and reads
// it at /mcp as clients of both generations do.
func TestEveryKind(t *testing.T) {
	stage.Of(t, "conformance")
	program, err := filepath.Abs("testdata/odd.py")
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, fmt.Sprintf("tools:\n  odd:\n    mcp: [python3, %s]\n    read: [%s]\n    prefix: \"\"\n    pin: false\n    readOnly: true\n    tools: {slow: {timeout: 2s}}\n", program, program))
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { kinds(t, &peer{t: t, address: address, revision: revision}) })
	}
}

// titled is what a tool, a resource, a template, a prompt and a link have alike.
const (
	later  = `{"z":12345678901234567890,"a":null,"m":{"y":1.1,"b":[]}}`
	titled = `"later":` + later + `,"title":"A title","icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"_meta":{"odd/key":{"n":12345678901234567890}}`
	text   = `{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.25,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"a":1},"later":` + later + `,"nothing":null}`
	every  = "[" + text + `,{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"audience":["assistant"]},"_meta":{"b":2}},
		{"type":"audio","data":"AQ==","mimeType":"audio/wav","annotations":{"priority":1},"_meta":{"c":3}},
		{"type":"resource_link","uri":"odd://link","name":"link","description":"d","mimeType":"text/plain","size":7,"annotations":{"priority":0.5},` + titled + `},
		{"type":"resource","resource":{"uri":"odd://text","mimeType":"text/plain","text":"embedded","_meta":{"d":4},"later":` + later + `},"annotations":{"priority":0.75},"_meta":{"e":5}},
		{"type":"resource","resource":{"uri":"odd://blob","mimeType":"application/octet-stream","blob":"Ag==","_meta":{"f":6}}},
		{"type":"text","text":"{}","mimeType":"application/json","data":{"x":1},"name":5}]`
)

func kinds(t *testing.T, p *peer) {
	t.Helper()
	said := p.greet()
	if text, _ := said["instructions"].(string); !strings.Contains(text, "Ask for every first.") {
		t.Errorf("the server's instructions are lost: %s", text)
	}
	has(t, said["capabilities"], `{"extensions":{"io.modelcontextprotocol/ui":{}}}`)
	listed(t, p)
	called(t, p)
	prompt := p.ask("prompts/get", map[string]any{"name": "p", "arguments": map[string]any{"x": "1"}, "_meta": map[string]any{"odd/sent": json.RawMessage(later)}})
	has(t, prompt, `{"description":"d","later":`+later+`,"_meta":{"odd/prompt":`+later+`,"odd/sent":`+later+`}}`)
	var messages []any
	for _, one := range prompt["messages"].([]any) {
		has(t, one, `{"role":"user","later":`+later+`}`)
		messages = append(messages, one.(map[string]any)["content"])
	}
	has(t, messages, every)
	has(t, p.ask("completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "p"}, "argument": map[string]any{"name": "x", "value": ""}}),
		`{"completion":{"values":[],"total":0,"later":`+later+`},"later":`+later+`}`)
	read := p.ask("resources/read", map[string]any{"uri": "ui://odd/view.html"})
	has(t, read, `{"later":`+later+`,"_meta":{"odd/read":`+later+`}}`)
	has(t, read["contents"],
		`[{"later":`+later+`,"uri":"ui://odd/view.html","mimeType":"text/html;profile=mcp-app","text":"<html></html>","name":"view","_meta":{"ui":{"csp":{"connectDomains":["https://example.com"]}}}}]`)
	has(t, p.ask("resources/read", map[string]any{"uri": "odd://large"})["contents"], `[{"uri":"odd://large","_meta":{"dev.toolhost/truncated":true}}]`)
}

// listed: the server has two tools a page, and resources on its second page only.
func listed(t *testing.T, p *peer) {
	t.Helper()
	tools := p.ask("tools/list", map[string]any{})
	has(t, in(t, tools, "tools", "every"), `{"description":"d","annotations":{"readOnlyHint":true},`+titled+`}`)
	has(t, in(t, tools, "tools", "shown"), `{"_meta":{"ui":{"resourceUri":"ui://odd/view.html","visibility":["model"]}}}`)
	has(t, in(t, tools, "tools", "object"), `{"outputSchema":{"type":"object","properties":{"n":{"type":"number"}}}}`)
	list, nothing := in(t, tools, "tools", "list"), in(t, tools, "tools", "nothing")
	if p.stateless() {
		has(t, list, `{"outputSchema":{"type":"array","items":{"type":"integer"}}}`)
		has(t, nothing, `{"outputSchema":{"type":["null","string"]}}`)
	} else if list["outputSchema"] != nil || nothing["outputSchema"] != nil {
		t.Errorf("an older client is told of schemas that it does not know: %v, %v", list, nothing)
	}
	has(t, in(t, p.ask("resources/list", map[string]any{}), "resources", "ui://odd/view.html"), `{"size":9,"mimeType":"text/html;profile=mcp-app","annotations":{"priority":0.5},`+titled+`}`)
	has(t, in(t, p.ask("resources/templates/list", map[string]any{}), "resourceTemplates", "odd://{x}"), `{"name":"t","annotations":{"priority":0.5},`+titled+`}`)
	has(t, in(t, p.ask("prompts/list", map[string]any{}), "prompts", "p"), `{"arguments":[{"name":"x","title":"X","required":true}],`+titled+`}`)
}

func called(t *testing.T, p *peer) {
	t.Helper()
	call := func(tool string) map[string]any {
		return p.ask("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}})
	}
	has(t, call("every"), `{"content":`+every+`,"_meta":{"odd/result":[1.5,null]},"later":`+later+`}`)
	told := p.ask("tools/call", map[string]any{"name": "told", "arguments": json.RawMessage(later), "_meta": map[string]any{"odd/sent": json.RawMessage(later)}})
	has(t, decoded(t, told["content"].([]any)[0].(map[string]any)["text"].(string)), "["+later+","+later+"]")
	has(t, call("object"), `{"content":[{"type":"text","text":"n"}],"structuredContent":{"n":12345678901234567890}}`)
	has(t, call("failing"), `{"content":[`+text+`],"isError":true,"structuredContent":{"why":"so"}}`)
	has(t, call("shown"), `{"_meta":{"ui":{"k":1}}}`)
	list, nothing := call("list"), call("nothing")
	if p.stateless() {
		has(t, list, `{"content":[],"structuredContent":[1,2]}`)
		has(t, nothing, `{"content":[],"structuredContent":null}`)
	} else {
		has(t, list, `{"content":[{"type":"text","text":"[1, 2]"}]}`)
		has(t, nothing, `{"content":[]}`)
		if _, there := list["structuredContent"]; there {
			t.Errorf("an older client gets a structured value that is not an object: %v", list)
		}
	}
	slow := call("slow")
	has(t, slow, `{"isError":true}`)
	if text := shape(t, slow["content"]); !strings.Contains(text, "the last progress was 1 of 4: a part") {
		t.Errorf("the partial result is lost: %s", text)
	}
}

// has checks that a value is the wanted one, where objects may have more keys. Numbers
// keep their digits.
func has(t *testing.T, got any, want string) {
	t.Helper()
	if missing := lacks("", got, decoded(t, want)); missing != "" {
		t.Errorf("%s\nin %.3000s\nwant %s", missing, shape(t, got), want)
	}
}

func decoded(t *testing.T, raw string) (value any) {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&value); err != nil {
		t.Fatalf("%v in %.500s", err, raw)
	}
	return value
}

func lacks(at string, got, want any) string {
	switch w := want.(type) {
	case map[string]any:
		g, is := got.(map[string]any)
		if !is {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for key, value := range w {
			if _, there := g[key]; !there {
				return at + "/" + key + " is missing"
			}
			if missing := lacks(at+"/"+key, g[key], value); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		g, is := got.([]any)
		if !is || len(g) != len(w) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i := range w {
			if missing := lacks(fmt.Sprintf("%s/%d", at, i), g[i], w[i]); missing != "" {
				return missing
			}
		}
		return ""
	}
	if got != want {
		return fmt.Sprintf("%s is %v", at, got)
	}
	return ""
}
