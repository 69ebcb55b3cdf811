package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
	"github.com/toolhost/toolhost/plugin"
)

// Bounds of a server's list of tools, so that hosts take what is made of it.
const (
	maxTools     = 1024
	maxPages     = 256
	maxListBytes = 3 << 20
	maxWarnings  = 64
)

// listing is a server's list of tools, without what cannot be called.
type listing struct {
	tools    []listed
	own      map[string]string // the server's name of a tool, by its safe one
	bytes    int
	warnings []string
}

// listed is a tool as its server lists it.
type listed struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		Title string `json:"title"`
		// One that is absent makes no claim here, whatever MCP's default.
		ReadOnlyHint    *bool `json:"readOnlyHint"`
		DestructiveHint *bool `json:"destructiveHint"`
		IdempotentHint  *bool `json:"idempotentHint"`
		OpenWorldHint   *bool `json:"openWorldHint"`
	} `json:"annotations"`
	Execution struct {
		TaskSupport string `json:"taskSupport"`
	} `json:"execution"`
	raw  json.RawMessage
	safe string
}

func (l *listing) warn(format string, args ...any) {
	if len(l.warnings) < maxWarnings {
		l.warnings = append(l.warnings, text.Begin(fmt.Sprintf(format, args...), maxNoteBytes))
	}
}

// add takes one tool of the list, or warns why not. It is false when the list
// is full.
func (l *listing) add(raw json.RawMessage) bool {
	if len(l.tools) == maxTools || l.bytes+len(raw) > maxListBytes {
		l.warn("the tools after the first %d are left out: at most %d tools with descriptions of %d bytes are taken", len(l.tools), maxTools, maxListBytes)
		return false
	}
	l.bytes += len(raw)
	var t listed
	if err := json.Unmarshal(raw, &t); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // which spells out Go's types
			err = fmt.Errorf("it has a %s where %s has no place for one", wrong.Value, cmp.Or(wrong.Field, "the list"))
		}
		l.warn("tool %q is left out: %v", t.Name, err)
		return true
	}
	if t.Name == "" {
		l.warn("tool %d is left out: it has no name", len(l.tools)+1)
		return true
	}
	t.raw, t.safe = raw, mcpname.Safe(t.Name)
	if other, taken := l.own[t.safe]; taken {
		l.warn("tool %q is left out: %q has its name already", t.Name, other)
		return true
	}
	l.own[t.safe] = t.Name
	l.tools = append(l.tools, t)
	return true
}

// list takes the server's list page by page, and keeps the names.
func (s *session) list(ctx context.Context) (*listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.StartTimeout, errListTimeout)
	defer cancel()
	l := &listing{own: map[string]string{}}
	alone := !s.server.has("prompts") && !s.server.has("resources")
	more, cursor := alone || s.server.has("tools"), ""
	for pages := 0; more; pages++ {
		if pages == maxPages && !alone {
			l.warn("tools/list: what comes after the first %d is left out: at most %d pages are taken", len(l.tools), maxPages)
			break
		}
		if pages == maxPages {
			return nil, s.failure(plugin.BrokeProtocol, fmt.Sprintf("lists its tools on more than %d pages", maxPages), nil)
		}
		tools, next, err := s.page(ctx, cursor)
		if rpc, refused := errors.AsType[*jsonrpc.Error](err); refused && rpc.Code == jsonrpc.CodeMethodNotFound && !alone {
			break // it has none, whatever it declares
		}
		if err != nil {
			return nil, err
		}
		more, cursor = next != "" && next != cursor, next
		for _, raw := range tools {
			if !l.add(raw) {
				more = false
				break
			}
		}
	}
	s.mu.Lock()
	s.own = l.own
	s.mu.Unlock()
	return l, nil
}

var errListTimeout = errors.New("the list of tools takes too long")

// page is one page of the list.
func (s *session) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	raw, err := s.listPage(ctx, "tools/list", cursor)
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, "", s.notListed(rpc)
	}
	if err != nil {
		return nil, "", s.unlisted(ctx, err)
	}
	var page struct {
		Tools      []json.RawMessage
		NextCursor string
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", s.failure(plugin.BrokeProtocol, "lists its tools in a form that MCP does not have: "+err.Error(), err)
	}
	return page.Tools, page.NextCursor, nil
}

func (s *session) listPage(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	p := params{}
	if cursor != "" {
		p["cursor"] = cursor
	}
	if s.stateless() {
		p["_meta"] = s.ownMeta()
	}
	return s.answer(ctx, method, p)
}

// notListed says that the server answered with an error.
func (s *session) notListed(err error) error {
	if wrong, ok := malformed(err); ok {
		return s.failure(plugin.BrokeProtocol, "lists its tools in a form that MCP does not have: "+wrong.Message, err)
	}
	said := err.Error()
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		said = textOf(e)
	}
	return s.failure(plugin.StartFailed, "does not list its tools: "+text.Begin(said, maxNoteBytes), err)
}

// unlisted says why there was no answer.
func (s *session) unlisted(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errListTimeout):
		return s.failure(plugin.StartFailed, s.notWithin("tools/list"), err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return s.endedWhy(ctx)
}

// endedWhy waits for the reason why the server is gone.
func (s *session) endedWhy(ctx context.Context) error {
	select {
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(maxCancelTime): // a process that the kernel holds
		return s.failure(plugin.Crashed, "is gone", nil)
	}
}

// ownName is what the server calls the tool of a safe name. The list is needed
// only for a name that may be a replacement.
func (s *session) ownName(ctx context.Context, safe string) (string, error) {
	if !mcpname.Hashed(safe) {
		return safe, nil
	}
	s.mu.Lock()
	own, known := s.own[safe]
	s.mu.Unlock()
	if known {
		return own, nil
	}
	l, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	if own, known = l.own[safe]; !known {
		return "", fmt.Errorf("MCP server %q has no tool %q", s.options.Name, safe)
	}
	return own, nil
}
