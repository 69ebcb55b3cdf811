package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// finish has results written as their servers have written them, and gives errors codes. Every
// middleware that looks at results or errors is within it.
func (s *Server) finish(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		result, err := next(ctx, method, r)
		if err != nil || result == nil {
			return result, coded(ofCursor(method, r, err))
		}
		of := s.gateway.Entries()
		of.Tool = s.extraOf
		return uncachedFor(r, verbatim.Result(result, of)), nil
	}
}

// coded is an error with a code of JSON-RPC: any other would be written with code 0.
func coded(err error) error {
	e, has := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return nil
	case !has:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	case e.Code == jsonrpc.CodeMethodNotFound:
		return ownMessage{err, e}
	}
	return err
}

// ownMessage is an error whose message the SDK would otherwise replace by its own, for its
// code. Where the SDK writes it, that is over HTTP, it has no data.
type ownMessage struct {
	error
	coded *jsonrpc.Error
}

func (o ownMessage) As(target any) bool {
	to, is := target.(**jsonrpc.Error)
	if is {
		*to = o.coded
	}
	return is
}

// withOwnMessage is an answer with the message of such an error.
func withOwnMessage(r *jsonrpc.Response) *jsonrpc.Response {
	own, is := r.Error.(ownMessage) //nolint:errorlint // finish comes last, and wraps it in nothing
	if !is {
		return r
	}
	e := *own.coded
	e.Message = own.Error()
	return &jsonrpc.Response{ID: r.ID, Error: &e}
}

// ofCursor is the error of a list whose cursor nobody was given: the SDK's names nothing.
func ofCursor(method string, r mcpsdk.Request, err error) error {
	e, is := errors.AsType[*jsonrpc.Error](err)
	if !is || e.Code != jsonrpc.CodeInvalidParams || !strings.HasSuffix(method, "/list") {
		return err
	}
	raw, _ := json.Marshal(r.GetParams()) // of what was decoded from JSON
	cursor := object.Text(raw, "cursor")
	if cursor == "" {
		return err
	}
	return &jsonrpc.Error{Code: e.Code, Message: fmt.Sprintf("unknown cursor %q: use the nextCursor of an answer, or leave it out to begin", cut(cursor, maxShownBytes))}
}

func (s *Server) extraOf(t *mcpsdk.Tool) object.Fields { return s.offerOf(t.Name).extra }
