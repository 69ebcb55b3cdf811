package gateway

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// Where another server has the same URIs, those of pages are renamed in the _meta of a resource
// as well, be it in a prompt, in a tool's result or read by itself; all else stays as it was.
func TestPagesOfResourcesAreRenamed(t *testing.T) {
	g := New(Host{})
	g.servers = directory.New([]catalog.Server{serverOf("a", []string{"ui://x", "x:1"}, nil), serverOf("b", []string{"ui://x", "x:1"}, nil)})
	const (
		meta    = `"_meta":{"k":1.50,"ui":{"resourceUri":"ui://x"}}`
		renamed = `"_meta":{"k":1.50,"ui":{"resourceUri":"ui://toolhost/b/x"}}`
		begin   = `{"role":"user","content":{"type":"resource","resource":{`
	)
	messages := g.renamedMessages("b", json.RawMessage(`[`+begin+`"uri":"x:1","text":"t",`+meta+`},`+meta+`},"own":2.0}]`))
	var list []json.RawMessage
	if json.Unmarshal(messages, &list) != nil || len(list) != 1 {
		t.Fatalf("%s", messages)
	}
	content := object.Of(object.Of(list[0])["content"])
	wantFields(t, "a message", list[0], `{"role":"user","content":`+string(object.Of(list[0])["content"])+`,"own":2.0}`)
	wantFields(t, "its resource", content["resource"], `{"uri":"toolhost:b/x:1","text":"t",`+renamed+`}`)
	wantFields(t, "its content", object.With(nil, "_meta", content["_meta"]), `{`+renamed+`}`)

	block := api.Content{Type: "resource", URI: "x:1", Text: "t", Extra: json.RawMessage(`{"resource":{` + meta + `},` + meta + `}`)}
	result := g.Renamed("b", &api.Result{Content: []api.Content{block}})
	fields := verbatim.BlockFields(result.Content[0])
	raw, _ := json.Marshal(fields["resource"])
	wantFields(t, "a tool's resource", raw, `{"uri":"toolhost:b/x:1","text":"t",`+renamed+`}`)
	wantFields(t, "a resource that is read", g.contentsOf("b", "x:1", block), `{"uri":"toolhost:b/x:1","text":"t",`+renamed+`}`)
}

// wantFields compares objects whose numbers keep their digits, whatever their order.
func wantFields(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	a, _ := json.Marshal(object.Of(got))
	b, _ := json.Marshal(object.Of([]byte(want)))
	if string(a) != string(b) {
		t.Errorf("%s: %s, want %s", what, a, b)
	}
}
