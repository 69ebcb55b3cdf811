package relay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// bodyWatch keeps the error by which the tool's part of a request ends too early.
type bodyWatch struct {
	io.ReadCloser
	relay *httpRelay
}

func (b *bodyWatch) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.relay.mu.Lock()
		b.relay.body = err
		b.relay.mu.Unlock()
	}
	return n, err
}

// undialled is an error that has its flow, or refusal, by itself.
type undialled struct{ error }

func (e undialled) Unwrap() error { return e.error }

// broken is what the flow says of a request that was given up in its midst; empty where
// that is reported otherwise, or nothing is wrong.
func (h *httpRelay) broken(o *outer) string {
	h.mu.Lock()
	err, body := h.err, h.body
	h.mu.Unlock()
	_, other := errors.AsType[undialled](err)
	_, refused := errors.AsType[*policyRefusal](err)
	switch {
	case other, refused, errors.Is(err, errIdle), errors.Is(err, errLimit):
		return ""
	case errors.Is(body, io.ErrUnexpectedEOF):
		return "the tool ended a request before its end"
	case body != nil && broken(body) == brokenOtherwise:
		return "the body of a request is malformed"
	case body != nil, err == nil: // the tool has gone, or nothing is wrong
		return ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), o.sawEnd.Load():
		return "the destination ended the connection before a whole answer"
	case broken(err) != brokenOtherwise:
		return broken(err)
	}
	return "the destination's answer cannot be read as HTTP"
}

const lateRequest = "it did not begin with an HTTP request in time"

// wrongRequest is why a request is not passed on, by what the server would have answered.
func wrongRequest(said []byte, first, late bool) string {
	status, text, _ := bytes.Cut(said, []byte("\r\n\r\n"))
	if len(text) == 0 {
		text, _, _ = bytes.Cut(bytes.TrimPrefix(status, []byte("HTTP/1.1 ")), []byte("\r\n"))
	}
	why := strings.ToLower(string(text))
	switch {
	case late && first:
		return lateRequest
	case late:
		return "an HTTP request did not come in time"
	case why == "400 bad request" && first:
		return "it does not begin with a valid HTTP request"
	case why == "400 bad request":
		return "the HTTP request is malformed"
	}
	if _, reason, ok := strings.Cut(why, ": "); ok {
		why = reason
	}
	return "the HTTP request is not passed on: " + why
}
