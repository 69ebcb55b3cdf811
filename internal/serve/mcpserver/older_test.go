package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/internal/tools/catalog"
)

// Before 2026-07-28 the schema of a property is an object: a strict client refuses the
// whole list for another one.
func TestPropertiesOfAnyValue(t *testing.T) {
	t.Parallel()
	const own = `{"type":"object","required":["z"],"properties":{"z":true,"no":false,"a":{"properties":{"deep":true}}}}`
	const older = `{"type":"object","required":["z"],"properties":{"z":{},"no":{"not":{}},"a":{"properties":{"deep":true}}}}`
	for want, lines := range map[string][]string{
		older: {saysInitialize, saysInitialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		own:   {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
	} {
		s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Description.InputSchema, tool.Description.OutputSchema = []byte(own), []byte(own)
			}
		}})
		answers := spoken(t, s, lines...)
		var list struct {
			Result struct {
				Tools []struct {
					Name                      string
					InputSchema, OutputSchema json.RawMessage
				}
			}
		}
		if err := json.Unmarshal([]byte(answers[len(answers)-1]), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Result.Tools {
			if tool.Name == "say" && (string(tool.InputSchema) != want || string(tool.OutputSchema) != want) {
				t.Errorf("%s and %s, want %s", tool.InputSchema, tool.OutputSchema, want)
			}
		}
		if len(list.Result.Tools) != 7 {
			t.Errorf("%d tools", len(list.Result.Tools))
		}
	}
}
