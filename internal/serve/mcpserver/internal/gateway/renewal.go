package gateway

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// beforeRenewal is how long a server whose process has ended is left alone: it may end
// each time.
const beforeRenewal = 5 * time.Second

// renewSubscriptions renews the subscriptions of a server process that has ended at a new one.
func (g *Gateway) renewSubscriptions(server Origin) {
	if g.host.Closing.Err() != nil {
		return
	}
	g.mu.Lock()
	for _, one := range g.watched.from(server) {
		g.lost[one] = "nobody has been asked"
	}
	g.mu.Unlock()
	all := g.subscribeLost(server.Entry)
	g.listsEnded(server.Entry)
	for pause := relistPause; !all && pause <= maxRelistPause && g.host.Closing.Err() == nil; pause *= 2 {
		g.pause(pause)
		all = g.subscribeLost(server.Entry)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.lost.of(server.Entry) {
		g.host.Logger.Warn("a subscription is lost, unless the server announces other lists", "server", one.Entry, "uri", one.uri, "why", g.lost[one])
	}
}

// losses are sources that sessions watch and a fresh process has refused to announce, with
// why: it may not have had its own lists then.
type losses map[source]string

func (l losses) of(entry string) (list []source) {
	for one := range l {
		if one.Entry == entry {
			list = append(list, one)
		}
	}
	return list
}

// subscribeLost tries an entry's losses once more, and says whether none is left.
func (g *Gateway) subscribeLost(entry string) (all bool) {
	g.mu.Lock()
	lost := g.lost.of(entry)
	g.mu.Unlock()
	all = true
	for _, one := range lost {
		all = g.host.Closing.Err() == nil && g.renewSubscription(one) && all
	}
	return all
}

// renewSubscription has a server announce the changes of a source that clients watch, and
// tells them that it may have changed meanwhile. It is a loss if that is refused.
func (g *Gateway) renewSubscription(one source) bool {
	why := ""
	if g.isWatched(one) {
		result, err := untilKept(func() (*api.Result, error) {
			return g.callFor(one.Share, one.Entry, catalog.Subscribe, one.params(), one.client())
		})
		switch {
		case err != nil:
			why = err.Error()
		case !result.OK():
			why = cmp.Or(result.Message, string(result.Status))
		default:
			g.updated(one, nil)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.lost, one)
	if why != "" {
		g.lost[one] = why
	}
	return why == ""
}

// callFor makes a request that no client waits for, in an identity's name; empty is nobody's.
func (g *Gateway) callFor(identity, entry, method string, params, client json.RawMessage) (*api.Result, error) {
	return g.host.CallFor(identity, turn.Call{ID: rand.Text(), Tool: catalog.RequestName(entry, method), Arguments: params, Client: client})
}
