package mcpserver

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// jsonErrors makes errors of JSON-RPC of the plain text by which the SDK refuses
// what is posted; finish must be called at last. An error behind events that the
// client has had already is one more of these. All else passes.
type jsonErrors struct {
	http.ResponseWriter
	posted []*jsonrpc.Request // what is refused
	text   *bytes.Buffer
	begun  bool // the answer: its status is gone
	event  bool // what is written is to be one
}

// maxRefusalBytes bounds what is kept of the SDK's text.
const maxRefusalBytes = 1 << 10

// WriteHeader implements http.ResponseWriter.
func (e *jsonErrors) WriteHeader(status int) {
	h := e.Header()
	if status >= http.StatusBadRequest && strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		e.text = &bytes.Buffer{}
		h.Set("Content-Type", "application/json")
		h.Del("Content-Length")
	}
	if e.event = e.begun && status >= http.StatusBadRequest; !e.event {
		e.begun = true
		e.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (e *jsonErrors) Write(b []byte) (int, error) {
	if e.text == nil {
		return len(b), e.send(b)
	}
	e.text.Write(b[:min(len(b), maxRefusalBytes-e.text.Len())])
	return len(b), nil
}

// send writes b, which is one line, as an event if it is to be one.
func (e *jsonErrors) send(b []byte) error {
	e.begun = true
	if !e.event {
		_, err := e.ResponseWriter.Write(b)
		return err
	}
	_, err := e.ResponseWriter.Write(slices.Concat([]byte("event: message\ndata: "), b, []byte("\n\n")))
	_ = http.NewResponseController(e.ResponseWriter).Flush() // as the SDK does behind each
	return err
}

// Unwrap is for http.ResponseController.
func (e *jsonErrors) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// finish writes the error, by the id of the one request that was posted.
func (e *jsonErrors) finish() {
	if e.text == nil {
		return
	}
	text := strings.TrimSpace(strings.ToValidUTF8(e.text.String(), ""))
	f := fault{code: jsonrpc.CodeInvalidRequest, text: text}
	if slices.ContainsFunc(e.posted, func(r *jsonrpc.Request) bool { _, known := methods[r.Method]; return !known }) {
		f.code = jsonrpc.CodeMethodNotFound // the SDK has no codes here
	}
	if calls := slices.DeleteFunc(e.posted, func(r *jsonrpc.Request) bool { return !r.IsCall() }); len(calls) == 1 {
		f.id = idText(calls[0])
	}
	_ = e.send(f.json())
}
