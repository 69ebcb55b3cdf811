package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// Origin is where a server is: the kept process of an entry, for all or, where an identity
// has its own, for one share.
type Origin struct{ Entry, Share string }

// source is a resource of an entry's server, by the server's own URI. A subscription is
// to a source: what a client's URI leads to depends on who asks, and on what the
// servers list at that time.
type source struct {
	Origin
	uri string
	// former is for a client before 2026-07-28: a kept server that speaks both
	// generations has a process for each.
	former bool
}

// client is who asks for it again.
func (s source) client() json.RawMessage {
	if !s.former {
		return nil
	}
	return mcpcall.Client{Protocol: LastFormer}.JSON()
}

// params are those of requests about it.
func (s source) params() json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"uri": s.uri}) // text always can be
	return raw
}

// below returns the rest of the other URI, if it lies below this one: a server may announce a
// file of a folder that is watched.
func (s source) below(other source) (rest string, is bool) {
	rest, is = strings.CutPrefix(other.uri, s.uri)
	part := rest == "" || strings.HasPrefix(rest, "/") || strings.HasSuffix(s.uri, "/")
	return rest, is && part && s.Origin == other.Origin
}

// origin is where an entry's server is for the sender of a request.
func (g *Gateway) origin(ctx context.Context, entry string) Origin {
	return Origin{entry, g.host.Share(ctx)}
}
