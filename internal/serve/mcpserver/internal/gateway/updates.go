package gateway

import (
	"encoding/json"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
)

// updateKey has, in the _meta of an update that the SDK is to deliver, what has changed:
// the SDK knows sessions by the URI alone that they have subscribed to. No client sees it.
const updateKey = "dev.toolhost/update"

// update is of a source that is watched, or of a part of it.
type update struct {
	of   source
	rest string                // of the part's URI
	only *mcpsdk.ServerSession // nil for all who watch the source
}

// updated tells sessions that a source has changed, each by the URI that it knows.
func (g *Gateway) updated(one source, params json.RawMessage) {
	for uri, sources := range g.subscriptions.hold(one, params) {
		for _, of := range sources {
			rest, _ := of.below(one)
			g.update(uri, update{of: of, rest: rest}, params)
		}
	}
}

// update has the SDK deliver one to those who know its source by a URI.
func (g *Gateway) update(uri string, change update, params json.RawMessage) {
	meta := verbatim.Meta(params)
	delete(meta, mcpsdk.MetaKeySubscriptionID)
	meta[updateKey] = change
	_ = g.sdk.ResourceUpdated(g.host.Closing, &mcpsdk.ResourceUpdatedNotificationParams{URI: uri, Meta: meta}) // which byMail does not let wait
}
