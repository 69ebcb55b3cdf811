package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/turn"
)

// Server is a wrapped MCP server, as far as it is described.
type Server struct {
	Entry config.Tool
	// Offers is what it has beside its tools, without what is held back.
	Offers *pluginv1.Server
	// Held says of prompts, templates and instructions why they are, a line each.
	Held []string
}

// Methods of requests to servers that are not calls of tools.
const (
	GetPrompt    = "prompts/get"
	ReadResource = "resources/read"
	Complete     = "completion/complete"
	Subscribe    = "resources/subscribe"
	Unsubscribe  = "resources/unsubscribe"
	// RootsChanged is a notification: a kept process hands it on.
	RootsChanged = "notifications/roots/list_changed"
)

var methods = []string{GetPrompt, ReadResource, Complete, Subscribe, Unsubscribe, RootsChanged}

// RequestName is what turns call such a request to a server: by it the configuration's
// rules hold for it, and the record names it.
func RequestName(entry, method string) string { return entry + ":" + method }

// Servers are those of the configuration, in its order, that were described, here or in the
// catalog before, and have more than tools to offer.
func (c *Catalog) Servers() (list []Server) {
	for _, entry := range c.loaded.Tools {
		c.mu.Lock()
		o, described := c.offers[entry.Name]
		if !described {
			o = c.earlier[entry.Name].offers
		}
		c.mu.Unlock()
		if o != nil {
			free, held := c.free(entry, o)
			list = append(list, Server{entry, free, held})
		}
	}
	return list
}

// HasServers says whether the configuration names MCP servers.
func (c *Catalog) HasServers() bool {
	return slices.ContainsFunc(c.loaded.Tools, func(t config.Tool) bool { return t.Type == config.TypeMCP })
}

// Renew has an entry's server say anew what it has: the process that is kept for it,
// if there is one. After an error what it has said before stands.
func (c *Catalog) Renew(ctx context.Context, name string) error {
	entry, ok := c.loaded.Tool(name)
	if !ok || entry.Type != config.TypeMCP || c.deniedServer(*entry) {
		return nil
	}
	request, err := c.serverRequest(*entry)
	if err != nil {
		return err
	}
	request.Anew = true
	if request.Keep != nil {
		keep := *request.Keep
		keep.Asked = true
		request.Keep = &keep
	}
	k := &known{done: make(chan struct{})}
	close(k.done)
	if k.tools, _, err = c.serverTools(ctx, *entry, request); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[name] = k
	delete(c.failed, name)
	select {
	case c.renewed <- struct{}{}:
	default:
	}
	return nil
}

func (c *Catalog) keepOffers(entry config.Tool, offers *pluginv1.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offers[entry.Name] = offers
}

// serverMethod reads a RequestName.
func (c *Catalog) serverMethod(name string) (entry config.Tool, method string, is bool) {
	of, method, is := strings.Cut(name, ":")
	if !is || !slices.Contains(methods, method) {
		return config.Tool{}, "", false
	}
	server, is := c.loaded.Tool(of)
	if !is || server.Type != config.TypeMCP {
		return config.Tool{}, "", false
	}
	return *server, method, true
}

// serverRequestTool is such a request as a turn makes it. What is read may be read
// again.
func (c *Catalog) serverRequestTool(entry config.Tool, method string) (turn.Tool, bool) {
	if c.denied(entry) {
		return turn.Tool{}, false
	}
	request, err := c.serverRequest(entry)
	request.Method, request.Name = method, RequestName(entry.Name, method)
	t := turn.Tool{
		Name: request.Name, Request: request, Mode: entry.Mode, ReadOnly: true, Repeatable: true, Exclusive: entry.Exclusive(),
	}
	if err != nil {
		t.Describe = func(context.Context) (*turn.Tool, *api.Result) { return nil, notStarted(t.Name, err) }
	}
	return t, true
}
