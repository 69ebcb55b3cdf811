package gateway

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"maps"
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
	g.subscriptions.loseAll(server)
	all := g.subscribeLost(server.Entry)
	g.listsEnded(server.Entry)
	for pause := relistPause; !all && pause <= maxRelistPause && g.host.Closing.Err() == nil; pause *= 2 {
		g.pause(pause)
		all = g.subscribeLost(server.Entry)
	}
	for one, why := range g.subscriptions.lostOf(server.Entry) {
		g.host.Logger.Warn("a subscription is lost, unless the server announces other lists", "server", one.Entry, "uri", one.uri, "why", why)
	}
}

// losses are sources that sessions watch and a fresh process has refused to announce, with
// why: it may not have had its own lists then.
type losses map[source]string

// loseAll notes that the process that announced the changes of all an origin's sources has ended.
func (s *subscriptions) loseAll(server Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.watched.from(server) {
		s.lost[one] = "nobody has been asked"
	}
}

// lostOf are an entry's losses.
func (s *subscriptions) lostOf(entry string) losses {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := maps.Clone(s.lost)
	maps.DeleteFunc(own, func(one source, _ string) bool { return one.Entry != entry })
	return own
}

// renewed notes that a source is announced again, or why it is not.
func (s *subscriptions) renewed(one source, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lost, one)
	if why != "" {
		s.lost[one] = why
	}
}

// subscribeLost tries an entry's losses once more, and says whether none is left.
func (g *Gateway) subscribeLost(entry string) (all bool) {
	all = true
	for one := range g.subscriptions.lostOf(entry) {
		all = g.host.Closing.Err() == nil && g.renewSubscription(one) && all
	}
	return all
}

// renewSubscription has a server announce the changes of a source that clients watch, and
// tells them that it may have changed meanwhile. It is a loss if that is refused.
func (g *Gateway) renewSubscription(one source) bool {
	why := ""
	if g.subscriptions.has(one) {
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
	g.subscriptions.renewed(one, why)
	return why == ""
}

// callFor makes a request that no client waits for, in an identity's name; empty is nobody's.
func (g *Gateway) callFor(identity, entry, method string, params, client json.RawMessage) (*api.Result, error) {
	return g.host.CallFor(identity, turn.Call{ID: rand.Text(), Tool: catalog.RequestName(entry, method), Arguments: params, Client: client})
}
