package mcpserver

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// What one server has written wrongly is mended or left out: strict clients would refuse
// all of a list for it.
func TestWhatIsWrongInOneServersLists(t *testing.T) {
	t.Parallel()
	bad := serverOf("a", nil, nil)
	bad.Offers.Capabilities = []byte(`{"resources":{},"extensions":{"org.example/odd":true,"org.example/good":{"a":null}}}`)
	bad.Offers.Resources = [][]byte{[]byte(`{"uri":"x://1","icons":["https://x/i.png",{"src":"data:,","sizes":"48x48","mimeType":"image/png"}],"description":null,"annotations":{"priority":null},"_meta":{"k":null}}`)}
	bad.Offers.Templates = [][]byte{[]byte(`{"uriTemplate":"x://{a}","icons":"data:,","name":null,"mimeType":null}`)}
	bad.Offers.Prompts = [][]byte{
		[]byte(`{"name":"p","icons":[{"src":"data:,","theirs":1.0}],"title":null,"arguments":[{"name":"z","description":null}]}`),
		[]byte(`{"name":"q","arguments":[{"description":"nameless"}]}`),
	}
	good := serverOf("b", []string{"y://1"}, []string{"y://{a}"})
	good.Offers.Prompts = [][]byte{[]byte(`{"name":"r"}`)}
	said := spoken(t, playedServers(t, &played{}, bad, good), saysInitialize, saysInitialized,
		`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}`, `{"jsonrpc":"2.0","id":4,"method":"prompts/list"}`)
	for i, want := range []string{
		`"extensions":{"org.example/good":{"a":null}}`,
		`"resources":[{"_meta":{"k":null},"annotations":{},"icons":[{"src":"data:,","mimeType":"image/png"}],"name":"x://1","uri":"x://1"},{"name":"r","uri":"y://1"}]`,
		`"resourceTemplates":[{"name":"x://{a}","uriTemplate":"x://{a}"},{"name":"t","uriTemplate":"y://{a}"}]`,
		`"prompts":[{"arguments":[{"name":"z"}],"icons":[{"src":"data:,","theirs":1.0}],"name":"p"},{"name":"r"}]`,
	} {
		if !strings.Contains(said[i], want) {
			t.Errorf("%s, want %s", said[i], want)
		}
	}
}

// A schema's properties and required may be missing, but not null.
func TestSchemasWithNulls(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
		if tool.Name == "say" {
			tool.Description.InputSchema = []byte(`{"type":"object","properties":null,"required":null,"default":null}`)
			tool.Description.OutputSchema = tool.Description.InputSchema
		}
	}})
	said := spoken(t, s, saysInitialize, saysInitialized, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if strings.Count(said[1], `Schema":{"type":"object","default":null}`) != 2 {
		t.Error(said[1])
	}
}
