package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/plugin"
)

// root is a folder that a server may work in.
type root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// granted are the client's roots as far as the call is granted them, as the client has
// written them, and all that it is granted where the client has named none.
func (o Options) granted(given json.RawMessage) json.RawMessage {
	list := []any{}
	var client struct{ Roots []json.RawMessage }
	if json.Unmarshal(given, &client) == nil && client.Roots != nil {
		for _, raw := range client.Roots {
			var r root
			if json.Unmarshal(raw, &r) == nil && o.mayReach(r.URI) {
				list = append(list, raw)
			}
		}
	} else {
		for _, path := range o.Roots {
			uri := url.URL{Scheme: "file", Path: path}
			list = append(list, root{URI: uri.String(), Name: filepath.Base(path)})
		}
	}
	raw, _ := json.Marshal(map[string]any{"roots": list}) // of strings, and what was decoded from JSON
	return raw
}

// grantedIn are the answers of a client with the roots among them as granted: an
// answer to anything else has no field of that name.
func (o Options) grantedIn(answers json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(answers, &all) != nil {
		return answers
	}
	for key, one := range all {
		var fields map[string]json.RawMessage
		if _ = json.Unmarshal(one, &fields); fields["roots"] != nil {
			all[key] = o.granted(one)
		}
	}
	raw, _ := json.Marshal(all) // of what was decoded from JSON
	return raw
}

// mayReach says whether a root lies in what the call is granted. Others than
// folders of this machine say nothing about files.
func (o Options) mayReach(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return false
	}
	path := filepath.Clean(u.Path)
	for _, granted := range o.Roots {
		if granted == "/" || path == granted || strings.HasPrefix(path, strings.TrimSuffix(granted, "/")+"/") {
			return true
		}
	}
	return false
}

// callerTime is how long a request of the server waits for a call that it may be
// about: a server that has just started asks before its first call is there.
const callerTime = 250 * time.Millisecond

// serve answers what a server asks of its client.
func (s *session) serve(ctx context.Context, m *jsonrpc.Request) (any, error) {
	switch m.Method {
	case methodPing:
		return struct{}{}, nil
	case methodElicit:
		return s.elicit(ctx, m.Params)
	case methodSample, methodRoots:
		return s.ofClient(ctx, m)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + text.Begin(m.Method, 100)}
}

// ofClient is what the client of the call that runs has to give.
func (s *session) ofClient(ctx context.Context, m *jsonrpc.Request) (any, error) {
	c := s.wire.caller(ctx)
	if m.Method == methodRoots && c == nil {
		return s.options.granted(nil), nil
	}
	if c == nil {
		s.notes.add("asked its client for " + m.Method + " while not exactly one call was running, so that nobody knows for which")
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "not exactly one call is running: nobody knows which one this is about"}
	}
	if m.Method == methodSample {
		if err := sampleFits(m.Params); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
	}
	given, err := s.askAll(ctx, c, plugin.Question{Requests: map[string]plugin.ClientRequest{"": {Method: m.Method, Params: m.Params}}})
	switch {
	case err != nil:
		return nil, err
	case refusedIn(given[""]) != nil:
		return nil, refusedIn(given[""])
	case given[""] == nil:
		return nil, errors.New("the client of this call has no model that it lets servers use, or did not let this one: it was asked for " + m.Method)
	}
	return given[""], nil
}

// refusedIn is the error that a client has answered with, if it has.
func refusedIn(answer json.RawMessage) *jsonrpc.Error {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(answer, &fields)
	var e *jsonrpc.Error
	_ = json.Unmarshal(fields[api.RefusedKey], &e)
	return e
}

// sampleFits says why params are not those of a request for a model.
func sampleFits(raw json.RawMessage) error {
	var p struct{ Messages []json.RawMessage }
	if json.Unmarshal(raw, &p) != nil || p.Messages == nil {
		return errors.New("params.messages must be an array of messages")
	}
	//lint:ignore SA1019 it is what a server may still send
	err := json.Unmarshal(raw, new(mcpsdk.CreateMessageWithToolsParams))
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("params.%s cannot be a %s", wrong.Field, wrong.Value)
	}
	return err
}

// caller is asker, after a moment if no call runs yet.
func (w *wire) caller(ctx context.Context) *call {
	end := time.Now().Add(callerTime)
	for {
		if len(w.running()) > 0 || time.Now().After(end) {
			return w.asker()
		}
		select {
		case <-time.After(callerTime / 25):
		case <-ctx.Done():
			return nil
		}
	}
}
