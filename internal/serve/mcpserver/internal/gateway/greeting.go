package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/mcpname"
)

// greetingTimes are how long a client that begins waits until the servers are described:
// what they say of themselves can be told then only. Clients give up discover sooner, for
// servers that do not know it may never answer.
var greetingTimes = map[string]time.Duration{"initialize": 2 * time.Second, "server/discover": time.Second}

// maxInstructionBytes bounds what all servers together tell models.
const maxInstructionBytes = 32 << 10

// greet adds what wrapped servers say of themselves to what clients are told at first:
// their instructions, and the extensions of the protocol that they have. They are told once.
func (g *Gateway) greet(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
		wait, greets := greetingTimes[method]
		if g.host.Servers == nil || !greets {
			return next(ctx, method, r)
		}
		select {
		case <-g.host.Loaded:
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		result, err := next(ctx, method, r)
		if err != nil { // what is behind the result then is nil
			return nil, err
		}
		who := g.host.Identity(ctx)
		switch said := result.(type) {
		case *mcpsdk.InitializeResult:
			said.Instructions += g.instructionsFor(who)
			said.Capabilities.Extensions = g.extensionsFor(who)
		case *mcpsdk.DiscoverResult:
			said.Instructions += g.instructionsFor(who)
			said.Capabilities.Extensions = g.extensionsFor(who)
		}
		return result, nil
	}
}

// usedBy are the servers whose requests somebody may make.
func (o *offers) usedBy(who access.Identity) (list directory.Directory) {
	servers := o.known()
	if len(servers) == 0 { // not all are described yet
		servers = directory.New(o.host.Servers())
	}
	for _, one := range servers {
		if who.MayUse(catalog.RequestName(one.Entry.Name, catalog.ReadResource)) {
			list = append(list, one)
		}
	}
	return list
}

// known are the servers that were described at the last reload.
func (o *offers) known() directory.Directory {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.servers
}

func (o *offers) instructionsFor(who access.Identity) string {
	all := &strings.Builder{}
	for _, w := range o.usedBy(who) {
		text := strings.TrimSpace(w.Offers.GetInstructions())
		if text == "" {
			continue
		}
		head := "\n\n# Of the server " + w.Entry.Name
		if prefix := w.Entry.MCP.Prefix; prefix != "" {
			head += ", whose tools and prompts here begin with " + prefix + mcpname.Separator
		}
		if all.Len()+len(head)+len(text) > maxInstructionBytes {
			text = "(left out: the servers before say too much)"
		}
		all.WriteString(head + "\n\n" + text)
	}
	return all.String()
}

const (
	extensionsOfMCP = "io.modelcontextprotocol/"
	extensionUI     = extensionsOfMCP + "ui"
)

// PassesOn says whether an extension is passed on, from servers to clients and the other way. MCP's
// own are only where nothing but content has a part in them: others have methods, which
// are not passed on.
func PassesOn(name string) bool {
	return name == extensionUI || !strings.HasPrefix(name, extensionsOfMCP)
}

// extensionsFor are those of all servers; of one that several have, the first server's
// settings.
func (o *offers) extensionsFor(who access.Identity) map[string]any {
	all := map[string]any{}
	for _, w := range o.usedBy(who) {
		var declared struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
		}
		_ = json.Unmarshal(w.Offers.GetCapabilities(), &declared)
		for name, settings := range declared.Extensions {
			if _, taken := all[name]; !taken && PassesOn(name) && object.Is(settings) {
				all[name] = settings
			}
		}
	}
	return all
}
