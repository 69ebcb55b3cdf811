package mcpserver

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/strictjson"
)

const (
	// maxMessageBytes bounds a message, on every transport.
	maxMessageBytes = 8 << 20
	// maxIDBytes bounds an id, as JSON.
	maxIDBytes = 256
	// codeBusy is of the codes that JSON-RPC leaves to servers.
	codeBusy = -32000
)

// fault is why something that a client sent is not taken, as JSON-RPC tells it.
type fault struct {
	id   json.RawMessage // nil where it cannot be read, or must not be used
	code int64
	text string
}

// json is the answer of JSON-RPC.
func (f *fault) json() []byte {
	raw, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{"2.0", f.id, jsonrpc.Error{Code: f.code, Message: f.text}})
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"bug: an error cannot be written"}}`)
	}
	return raw
}

// answer refuses what was posted.
func (f *fault) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(f.json())
}

// readMessage reads one message, with more care than the SDK: it takes a key
// that is there twice and text that is not UTF-8, and cuts the fraction off an id.
func readMessage(raw []byte) (m jsonrpc.Message, f *fault) {
	m, _, f = readMessageAs(raw)
	return m, f
}

// readMessageAs says as well whether the message is another than was sent, with what
// keepWritten adds.
func readMessageAs(raw []byte) (_ jsonrpc.Message, changed bool, _ *fault) {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil, false, &fault{code: jsonrpc.CodeParseError, text: "this is not JSON in UTF-8: send each message whole, in one line"}
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // what is not an object is refused next
	refused := func(text string) (jsonrpc.Message, bool, *fault) {
		return nil, false, &fault{id: echo(fields), code: jsonrpc.CodeInvalidRequest, text: text}
	}
	if err := strictjson.Object(raw); err != nil {
		return refused(err.Error())
	}
	if id, there := fields["id"]; there && !isID(id) {
		return refused("the id is neither a whole number below 2^53 nor a string of at most " + strconv.Itoa(maxIDBytes) + " bytes")
	}
	if string(fields["jsonrpc"]) != `"2.0"` {
		return refused(`this is not a JSON-RPC 2.0 message: it has no "jsonrpc":"2.0"`)
	}
	sent, params := fields["params"], object.Of(fields["params"])
	changed = keepWritten(fields, params)
	m, err := decode(fields)
	if err != nil {
		return refused("this is not a JSON-RPC 2.0 message: " + cut(err.Error(), maxShownBytes))
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		if err := unfitParams(r, sent, params); err != nil {
			return nil, false, &fault{id: echo(fields), code: jsonrpc.CodeInvalidParams, text: err.Error()}
		}
	}
	return m, changed, nil
}

// methods are those that the SDK serves, and whether they must have parameters:
// it answers by another code then.
var methods = map[string]bool{
	"initialize": true, "ping": false, "server/discover": false, "tools/list": false, "tools/call": true, "prompts/list": false, "prompts/get": true,
	"resources/list": false, "resources/templates/list": false, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"subscriptions/listen": true, "completion/complete": true, "logging/setLevel": true, cancelledMethod: false, "notifications/initialized": false,
	"notifications/roots/list_changed": false, "notifications/progress": false,
}

// decode does what the SDK's DecodeMessage does, at a tenth of its price: that
// takes 64 KiB for each.
func decode(fields map[string]json.RawMessage) (jsonrpc.Message, error) {
	id, hasID := idOf(fields["id"])
	if method, there := fields["method"]; there {
		if method[0] != '"' {
			return nil, errors.New("its method is not a string")
		}
		r := &jsonrpc.Request{ID: id, Params: fields["params"]}
		return r, json.Unmarshal(method, &r.Method)
	}
	failure, result := fields["error"], fields["result"]
	if !hasID || failure == nil && result == nil {
		return nil, errors.New("it has no method, and is not an answer either")
	}
	r := &jsonrpc.Response{ID: id, Result: result}
	if failure == nil || string(failure) == "null" {
		return r, nil
	}
	var e jsonrpc.Error
	r.Error = &e
	return r, json.Unmarshal(failure, &e)
}

// lineOf is a message as a line. The SDK has just encoded a result, in one line: its
// EncodeMessage would read and copy that once more.
func lineOf(m jsonrpc.Message) ([]byte, error) {
	if r, ok := m.(*jsonrpc.Response); ok {
		if r.Error == nil && len(r.Result) > 0 {
			id, err := json.Marshal(r.ID.Raw())
			return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), r.Result, []byte("}\n")), err
		}
		m = withOwnMessage(r)
	}
	raw, err := jsonrpc.EncodeMessage(m)
	return append(raw, '\n'), err
}

// echo is the id by which to answer what is not a message. That of an answer is
// our own: it would be taken for one of the client's.
func echo(fields map[string]json.RawMessage) json.RawMessage {
	id := fields["id"]
	if len(id) == 0 || len(id) > maxIDBytes || fields["result"] != nil || fields["error"] != nil {
		return nil
	}
	if c := id[0]; c == '"' || c == '-' || '0' <= c && c <= '9' {
		return id
	}
	return nil
}

// isID says whether the SDK answers by the very id that it got.
func isID(raw json.RawMessage) bool {
	if len(raw) == 0 || len(raw) > maxIDBytes {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 // those above are rounded
}

// idOf is an id that isID.
func idOf(raw json.RawMessage) (id jsonrpc.ID, ok bool) {
	var value any
	if !isID(raw) || json.Unmarshal(raw, &value) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}
