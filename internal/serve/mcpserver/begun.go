package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// withoutBeginning are the methods that need no session to have begun.
var withoutBeginning = map[string]bool{"initialize": true, "ping": true, "server/discover": true}

// begins says whether a request begins a session, or needs none: from 2026-07-28 on each
// names its version.
func begins(r *jsonrpc.Request) bool {
	return r.Method == "initialize" || stateless(object.Of(r.Params))
}

func stateless(params object.Fields) bool {
	return object.Text(params["_meta"], mcpsdk.MetaKeyProtocolVersion) >= multiRound
}

// tooEarly is why requests cannot be served before a session has begun: the SDK refuses
// them without a code, and over HTTP with the status 200.
func tooEarly(requests ...*jsonrpc.Request) *fault {
	if slices.ContainsFunc(requests, begins) {
		return nil
	}
	for _, r := range requests {
		_, known := methods[r.Method]
		switch {
		case !r.IsCall() || withoutBeginning[r.Method]:
		case !known:
			return &fault{id: idText(r), code: jsonrpc.CodeMethodNotFound, text: fmt.Sprintf("unknown method %q", cut(r.Method, maxShownBytes))}
		default:
			return &fault{id: idText(r), code: jsonrpc.CodeInvalidRequest, text: r.Method + " without a session: begin one with initialize"}
		}
	}
	return nil
}

// otherVersion is why requests cannot be served that name another version than the header
// does: who reads the header alone would take them for other ones.
func otherVersion(header string, requests []*jsonrpc.Request) *fault {
	for _, r := range requests {
		own := object.Text(object.Of(r.Params)["_meta"], mcpsdk.MetaKeyProtocolVersion)
		if !r.IsCall() || own == "" || own == header {
			continue
		}
		is := fmt.Sprintf("is %q", cut(header, maxShownBytes))
		if header == "" {
			is = "is missing"
		}
		return &fault{id: idText(r), code: mcpsdk.CodeHeaderMismatch, text: fmt.Sprintf("the header MCP-Protocol-Version %s, and %q in params._meta is %q: send the same in both", is, mcpsdk.MetaKeyProtocolVersion, cut(own, maxShownBytes))}
	}
	return nil
}

func idText(r *jsonrpc.Request) json.RawMessage {
	id, _ := json.Marshal(r.ID.Raw()) // a number or a string
	return id
}
