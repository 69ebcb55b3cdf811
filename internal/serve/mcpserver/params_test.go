package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Params that the SDK cannot read are refused before it: by their names, in words of JSON.
func TestUnfitParams(t *testing.T) {
	for _, test := range []struct{ method, params, says string }{
		{"tools/call", `[1]`, `params must be an object, not [1]`},
		{"tools/call", `null`, `tools/call has no params: send them`},
		{"tools/call", `{"name":5}`, `params.name must be a string, not 5`},
		{"tools/call", `{"name":"t","requestState":true}`, `params.requestState must be a string, not true`},
		{"tools/call", `{"name":"t","_meta":5}`, `params._meta must be an object, not 5`},
		{"tools/call", `{"name":"t","_meta":{"progressToken":{}}}`, `params._meta.progressToken must be a string or a whole number below 2^53, not {}`},
		{"tools/list", `{"_meta":{"progressToken":1.5}}`, `params._meta.progressToken must be a string or a whole number below 2^53, not 1.5`},
		{"tools/list", `{"cursor":[]}`, `params.cursor must be a string, not []`},
		{"tools/list", `{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}`, `params._meta["io.modelcontextprotocol/logLevel"] must be one of debug, info, notice, warning, error, critical, alert, emergency, not "loud"`},
		{"logging/setLevel", `{"level":"loud"}`, `params.level must be one of debug, info, notice, warning, error, critical, alert, emergency, not "loud"`},
		{"logging/setLevel", `{}`, `params.level is missing: it must be one of debug,`},
		{"initialize", `{"protocolVersion":5}`, `params.protocolVersion must be a string, not 5`},
		{"initialize", `{"clientInfo":{"name":[]}}`, `params.clientInfo.name must be a string, not []`},
		{"initialize", `{"capabilities":{"roots":{"listChanged":1}}}`, `params.capabilities.roots.listChanged must be true or false, not 1`},
		{"prompts/get", `{"name":"p","arguments":{"b":{},"a":1,"0":"x","z":null}}`, `params.arguments.a must be a string, not 1`},
		{"prompts/get", `{"name":"p","arguments":{"c":[1]}}`, `params.arguments.c must be a string, not [1]`},
		{"prompts/get", `{"name":"p","arguments":5}`, `params.arguments must be an object, not 5`},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["x",1]}}`, `each element of params.notifications.resourceSubscriptions must be a string, not ["x",1]`},
		{"resources/read", `{"uri":{}}`, `params.uri must be a string, not {}`},
		{"resources/read", `{}`, `params.uri is missing: it must be a string`},
		{"resources/subscribe", `{"uri":null}`, `params.uri is missing: it must be a string`},
		{"resources/unsubscribe", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, ``},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"x"}}`, `params.notifications.resourceSubscriptions must be an array, not "x"`},
		{"completion/complete", `{"ref":{"type":5}}`, `params.ref.type must be a string, not 5`},
		{"completion/complete", `{"ref":{"type":"x"}}`, `params.ref must be {"type": "ref/prompt", "name": NAME} or {"type": "ref/resource", "uri": URI}, not {"type":"x"}`},

		{"tools/call", `{"name":"t","inputResponses":[]}`, `params.inputResponses must be an object, not []`},
		{"tools/call", `{"name":"t","inputResponses":{"k":{"action":5}}}`, `params.inputResponses.k.action must be a string, not 5`},
		{"tools/call", `{"name":"t","inputResponses":{"k":{"action":"accept","content":1}}}`, `params.inputResponses.k.content must be an object, not 1`},
		{"tools/call", `{"name":"t","inputResponses":{"k":{}}}`, `params.inputResponses.k must be an answer, such as {"action": "accept"} with its content, not {}`},
		{"tools/call", `{"name":"t","inputResponses":{"k":null}}`, `params.inputResponses.k must be an answer, such as {"action": "accept"} with its content, not null`},
		{"tools/call", `{"name":"t","inputResponses":{"k":"accept"}}`, `params.inputResponses.k must be an object, not "accept"`},
		{"tools/call", `{"name":"t","inputResponses":{"k":{"error":1}}}`, `params.inputResponses.k must be an answer, such as {"action": "accept"} with its content, not {"error":1}`},

		{"tools/call", `{"name":"t","_meta":null,"arguments":5}`, `params.arguments must be an object, not 5`},
		{"tools/call", `{"name":"t","_meta":null,"arguments":null}`, ``},
		{"tools/call", `{"name":"t","_meta":{"progressToken":"a","x":5},"inputResponses":{"k":{"action":"maybe"}}}`, ``},
		{"tools/list", `{"_meta":{"progressToken":null}}`, ``},
		{"tools/list", `null`, ``},
		{"logging/setLevel", `{"level":"alert"}`, ``},
		{"logging/setLevel", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, ``}, // is an unknown method
		{"prompts/get", `{"name":"p"}`, ``},
		{"prompts/get", `{"name":"p","arguments":{"a":null}}`, ``},
		{"nope", `[]`, ``},
	} {
		_, f := readMessage(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, test.method, test.params))
		if (f == nil) != (test.says == "") || f != nil && (f.code != jsonrpc.CodeInvalidParams || string(f.id) != "7" || !strings.HasPrefix(f.text, test.says)) {
			t.Errorf("%s %s: %+v, want %s", test.method, test.params, f, test.says)
		}
	}
}
