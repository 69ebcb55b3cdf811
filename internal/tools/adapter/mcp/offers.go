package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"

	"github.com/toolhost/toolhost/internal/text"
)

// maxOffers bounds the prompts, resources and templates of a server, of each.
const maxOffers = 1024

// offers is what the server has beside its tools. A list that it does not give is
// left out with a warning: nothing else depends on it.
func (s *session) offers(ctx context.Context, l *listing) *pluginv1.Server {
	o := &pluginv1.Server{
		Instructions: text.Begin(s.server.Instructions, maxInstructions), Protocol: s.server.ProtocolVersion, Capabilities: s.server.Capabilities,
	}
	if len(o.Capabilities) > maxMetaBytes {
		o.Capabilities = nil
	}
	if s.server.has("prompts") {
		o.Prompts = s.all(ctx, l, "prompts/list", "prompts", "name")
	}
	if s.server.has("resources") {
		o.Resources = s.all(ctx, l, "resources/list", "resources", "uri")
		o.Templates = s.all(ctx, l, "resources/templates/list", "resourceTemplates", "uriTemplate")
	}
	return o
}

// maxInstructions bounds what a server tells models about itself.
const maxInstructions = 16 << 10

func offersAny(o *pluginv1.Server) bool {
	return len(o.GetPrompts())+len(o.GetResources())+len(o.GetTemplates()) > 0
}

// all takes a list page by page, within what is left of the bounds that all lists
// of a server share. Of several entries with the same key the first stays.
func (s *session) all(ctx context.Context, l *listing, method, field, key string) (list [][]byte) {
	cursor, seen := "", map[string]bool{}
	for pages := 0; ; pages++ {
		if pages == maxPages {
			l.warn("%s: what comes after the first %d is left out: at most %d pages are taken", method, len(list), maxPages)
			return list
		}
		raw, err := s.listPage(ctx, method, cursor)
		if rpc, is := errors.AsType[*jsonrpc.Error](err); is && rpc.Code == jsonrpc.CodeMethodNotFound {
			return list // it has none: there are servers with resources that know no templates
		}
		if err != nil {
			l.warn("%s is not answered: %v", method, err)
			return list
		}
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		next := ""
		if json.Unmarshal(raw, &page) != nil || json.Unmarshal(page[field], &entries) != nil {
			l.warn("%s is answered in a form that MCP does not have", method)
			return list
		}
		_ = json.Unmarshal(page["nextCursor"], &next)
		for _, one := range entries {
			if len(list) == maxOffers || l.bytes+len(one) > maxListBytes {
				l.warn("%s: what comes after the first %d is left out: at most %d are taken, and lists of %d bytes in all", method, len(list), maxOffers, maxListBytes)
				return list
			}
			l.bytes += len(one)
			if l.repeats(one, method, key, seen) {
				continue
			}
			list = append(list, one)
		}
		if next == "" || next == cursor {
			return list
		}
		cursor = next
	}
}

// repeats says whether an entry has the key of one before, and warns of it.
func (l *listing) repeats(entry json.RawMessage, method, key string, seen map[string]bool) bool {
	var fields map[string]json.RawMessage
	value := ""
	if json.Unmarshal(entry, &fields) != nil || json.Unmarshal(fields[key], &value) != nil {
		return false
	}
	again := seen[value]
	if seen[value] = true; again {
		l.warn("%s: another entry of %s %q is left out", method, key, value)
	}
	return again
}
