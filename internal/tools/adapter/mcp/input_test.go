package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugin"
)

// Servers of the newest protocol that ask for something instead of an answer.
func init() {
	// "wants" asks, in answer to any request, for what the arguments have as "wants".
	scripts["wants"] = func(p *peer) {
		p.modern = true
		for {
			switch m := p.next(); m.Method {
			case "server/discover":
				p.answer(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			default:
				p.answer(m, fmt.Sprintf(`{"resultType":"input_required","inputRequests":%s}`, m.param("arguments", "wants")))
			}
		}
	}
}

// What a server asks for in a form that MCP does not have is its own fault, not the client's.
func TestWrongInput(t *testing.T) {
	t.Parallel()
	a := server(t, "wants")
	for wants, why := range map[string]string{
		`{"k":{"method":"elicitation/create"}}`:                                            "inputRequests.k.params must be an object",
		`{"k":{"method":"elicitation/create","params":null}}`:                              "inputRequests.k.params must be an object",
		`{"k":{"method":"elicitation/create","params":{"message":5}}}`:                     "inputRequests.k.params.message cannot be a number",
		`{"k":{"method":"elicitation/create","params":{"message":"` + big(20<<10) + `"}}}`: "params are too large: message may have 16384 bytes",
		`{"k":{"method":"sampling/createMessage","params":{}}}`:                            "inputRequests.k.params.messages must be an array",
		`{"a":{"method":"roots/list"},"k":{"method":"tools/list"}}`:                        `inputRequests.k.method must be elicitation/create, sampling/createMessage or roots/list, not "tools/list"`,
		`{"` + strings.Repeat("k", 1000) + `":{"method":"roots/lists"}}`:                   "method must be",
		`{"k":{"method":"elicitation/create","params":["message","Who?"]}}`:                "inputRequests.k.params must be an object",
	} {
		_, o := call1(t, a, "x", `{"wants":`+wants+`}`)
		expectFailure(t, wants, o.err, plugin.BrokeProtocol, `MCP server "test" asked for input that cannot be passed on: inputRequests.`, why)
	}
}

// A request that no server may answer by asking for something is said to be that.
func TestInputForACompletion(t *testing.T) {
	t.Parallel()
	_, err := server(t, "wants").Request(t.Context(), "completion/complete", json.RawMessage(`{"arguments":{"wants":{}}}`), plugin.NewOutput(new(record).send))
	expectFailure(t, "a completion", err, plugin.BrokeProtocol, `MCP server "test" answered completion/complete by asking for input (input_required)`)
}
