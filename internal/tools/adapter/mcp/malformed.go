package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/text"
)

// codeMalformed marks the errors that stand for answers which cannot be read. It
// is reserved by JSON-RPC, which gives it no meaning.
const codeMalformed = -32768

// malformedAnswer turns a malformed answer into an error, for which the request
// would otherwise wait until the deadline. It is nil for anything else, such as
// a line of a log in JSON.
func malformedAnswer(message []byte) *jsonrpc.Response {
	var fields map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || !meantAsAnswer(fields) {
		return nil
	}
	var value any
	if json.Unmarshal(fields["id"], &value) != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(value)
	if err != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: codeMalformed, Message: text.Begin(whatIsWrong(message, fields), maxNoteBytes)}}
}

// orphan is the error of an answer without an id, by which a server says that it could not
// read what it was sent; nil for anything else.
func orphan(message []byte) *jsonrpc.Response {
	var m struct {
		Version string `json:"jsonrpc"`
		ID      any
		Method  any
		Error   *jsonrpc.Error
	}
	if json.Unmarshal(message, &m) != nil || m.Version != "2.0" || m.ID != nil || m.Method != nil || m.Error == nil || m.Error.Code == 0 {
		return nil
	}
	return &jsonrpc.Response{Error: m.Error}
}

// meantAsAnswer reports whether a message has the fields of an answer, and no others.
func meantAsAnswer(fields map[string]json.RawMessage) bool {
	for name := range fields {
		if !slices.Contains([]string{"jsonrpc", "id", "result", "error"}, name) {
			return false
		}
	}
	return fields["id"] != nil && (fields["result"] != nil || fields["error"] != nil)
}

func whatIsWrong(message []byte, fields map[string]json.RawMessage) string {
	if version := strings.TrimSpace(string(fields["jsonrpc"])); version != `"2.0"` {
		if version == "" {
			return `the answer has no "jsonrpc": "2.0"`
		}
		return `the answer has "jsonrpc": ` + version + `, not "2.0"`
	}
	_, err := jsonrpc.DecodeMessage(message)
	if err == nil {
		return "bug: nothing is wrong with it"
	}
	return err.Error() + ": " + text.Begin(string(message), 200)
}

// malformed is whether an answer was made by malformedAnswer.
func malformed(err error) (*jsonrpc.Error, bool) {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return e, ok && e.Code == codeMalformed
}

// maxErrorDataBytes bounds what an error says beside its message.
const maxErrorDataBytes = 1 << 10

// textOf is what an error of the server says, its data included.
func textOf(e *jsonrpc.Error) string {
	said := text.Begin(e.Message, maxErrorBytes)
	if strings.TrimSpace(said) == "" {
		said = "an error without a message"
	}
	data := bytes.Buffer{}
	if json.Compact(&data, e.Data) != nil || data.String() == "null" {
		return said
	}
	shown := data.String()
	_ = json.Unmarshal(e.Data, &shown) // a text without its quotes
	return said + " (data: " + text.Begin(shown, maxErrorDataBytes) + ")"
}
