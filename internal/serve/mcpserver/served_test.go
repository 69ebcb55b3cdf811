package mcpserver

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of 2026-07-28 never get the error with addresses to open: they get a result,
// or another error.
func TestAddressesToOpenForNewerClients(t *testing.T) {
	p := &played{fails: func(string) *jsonrpc.Error {
		return &jsonrpc.Error{Code: mcpsdk.CodeURLElicitationRequired, Message: "sign in", Data: json.RawMessage(`{"elicitations":[{"mode":"url","url":"https://x/","elicitationId":"e"}]}`)}
	}}
	a := serverOf("a", []string{"x://1"}, nil)
	said := spoken(t, playedServers(t, p, a), `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if !strings.Contains(said[0], `"error":{"code":-32603,`) {
		t.Error(said[0])
	}
	said = spoken(t, playedServers(t, p, a), saysInitialize, saysInitialized, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1"}}`)
	if !strings.Contains(said[1], `"error":{"code":-32042,`) {
		t.Error(said[1])
	}
}

// What is missing has the code of the client's version, whatever its server speaks, and
// its URI. Other errors are the server's own.
func TestCodesOfMissingResources(t *testing.T) {
	const uri = "x://\a\x7f<é>"
	named, _ := json.Marshal(map[string]string{"uri": "own:" + uri})
	const old = -32002
	for name, test := range map[string]struct {
		err           error
		before, since int64
		uri           string
	}{
		"nobody's":              {noResource(uri), old, jsonrpc.CodeInvalidParams, uri},
		"of an old server":      {&jsonrpc.Error{Code: old}, old, jsonrpc.CodeInvalidParams, uri},
		"of a new server":       {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: named}, old, jsonrpc.CodeInvalidParams, "own:" + uri},
		"another parameter":     {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams, ""},
		"another error with it": {&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Data: named}, jsonrpc.CodeInternalError, jsonrpc.CodeInternalError, "own:" + uri},
	} {
		for version, code := range map[string]int64{"2025-06-18": test.before, "2025-11-25": test.before, "2026-07-28": test.since} {
			e, ok := errors.AsType[*jsonrpc.Error](notFound(test.err, uri, version))
			if !ok || e.Code != code {
				t.Errorf("%s, %s: %+v, want code %d", name, version, e, code)
				continue
			}
			var data struct{ URI string }
			if len(e.Data) > 0 && json.Unmarshal(e.Data, &data) != nil || data.URI != test.uri {
				t.Errorf("%s, %s: data %q, want the URI %q", name, version, e.Data, test.uri)
			}
		}
	}
	if err := errors.New("other"); notFound(err, uri, "2025-11-25") != err {
		t.Error("an error without a code is another one")
	}
}
