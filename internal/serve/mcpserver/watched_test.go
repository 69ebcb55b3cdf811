package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// played are calls of wrapped servers that a test plays: each goes well at once.
type played struct {
	meanwhile func(name string) // called during each; nil does nothing
	// fails, if not nil, returns the error that the server answers with, or nil.
	fails func(name string) *jsonrpc.Error
	// listing, if not nil, is what the list of servers waits for to be closed.
	listing chan struct{}

	mu     sync.Mutex
	asked  []string
	former int // of these, for clients before 2026-07-28
}

type over struct{ result *api.Result }

func (over) Abort(api.Reason)      {}
func (o over) Result() *api.Result { return o.result }

func (p *played) start(_ context.Context, r supervisor.Request) turn.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Name+" "+object.Text(r.Arguments, "uri"))
	if version := mcpcall.Of(r.Client).Protocol; version != "" && version < multiRound {
		p.former++
	}
	if p.meanwhile != nil {
		p.meanwhile(r.Name)
	}
	result := supervisor.Verdict{CallID: r.ID, Tool: r.Name, Status: api.StatusOK}.Result()
	result.Instance = api.InstanceReused
	if p.fails != nil {
		if e := p.fails(r.Name); e != nil {
			result.Status, result.ToolError = api.StatusToolError, &api.ToolError{Kind: "error", Message: e.Message}
			result.ToolError.RPC, _ = json.Marshal(e)
		}
	}
	return over{result}
}

func (p *played) times(what string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.asked {
		if one == what {
			n++
		}
	}
	return n
}

func (p *played) listed() bool {
	select {
	case <-p.listing:
	default:
		return p.listing == nil
	}
	return true
}

// kept is a server whose process is.
func kept(one catalog.Server) catalog.Server {
	one.Entry.MCP.Keep = &config.Keep{}
	return one
}

// playedServers offers wrapped servers whose calls are played.
func playedServers(t *testing.T, p *played, servers ...catalog.Server) *Server {
	t.Helper()
	asker := NewAsker()
	turns := turn.New(turn.Config{Start: p.start, NoStatus: true, Interactor: asker, Tool: func(name string) (turn.Tool, bool) {
		return turn.Tool{Name: name, Request: supervisor.Request{Name: name}, Repeatable: true}, true
	}})
	t.Cleanup(turns.Close)
	s, err := New(Config{
		Turns: turns, Asker: asker,
		Servers: func() []catalog.Server {
			if p.listed() {
				return servers
			}
			return nil
		},
		Renew: func(context.Context, string) error { return nil },
		Tools: func(ctx context.Context) ([]catalog.Tool, []error) {
			if p.listing != nil {
				select {
				case <-p.listing:
				case <-ctx.Done():
				}
			}
			return nil, nil
		},
		Access: func(name string) access.Identity {
			of := map[string][]string{"uid 1": nil, "uid 2": {"b:*/*"}}
			return access.Identity{Name: name, Roles: []access.Role{access.Admin}, Tools: of[name]}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// updates are what a client hears.
type updates struct {
	mu    sync.Mutex
	heard []string
}

func (u *updates) options() *mcpsdk.ClientOptions {
	return &mcpsdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcpsdk.ResourceUpdatedNotificationRequest) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.heard = append(u.heard, fmt.Sprint(r.Params.URI, " ", r.Params.Meta["n"]))
	}}
}

// await waits for as many, in any order: they come by several streams.
func (u *updates) await(t *testing.T, want ...string) {
	t.Helper()
	heard := func() []string {
		u.mu.Lock()
		defer u.mu.Unlock()
		return slices.Sorted(slices.Values(u.heard))
	}
	wait.Until(t, fmt.Sprintf("%q is heard", want), func() bool { return len(heard()) >= len(want) })
	slices.Sort(want)
	if got := heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// An update reaches those who have subscribed to that resource of that server, by the
// URI that each has subscribed to it by: an alias, or one that leads another client, who
// may use other servers, elsewhere. A server's subscription lasts as long as any of them.
func TestUpdatesReachWhoSubscribed(t *testing.T) {
	for _, k := range kinds[2:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := &played{}
			s := playedServers(t, p, kept(serverOf("a", []string{"x://same"}, nil)), kept(serverOf("b", []string{"x://same"}, nil)))
			var acknowledged atomic.Int32
			s.sdk.AddSendingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
				return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
					if method == "notifications/subscriptions/acknowledged" {
						acknowledged.Add(1)
					}
					return next(ctx, method, r)
				}
			})
			url := forPeers(t, s)
			var all, again, part updates
			subscribed := func(u *updates, who string, uris ...string) *mcpsdk.ClientSession {
				c := connectTo(t, transportOf(t, url, who), k, u.options())
				for _, uri := range uris {
					if err := c.Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
				}
				return c
			}
			const alias = "toolhost:b/x://same"
			first := subscribed(&all, "uid 1", "x://same", alias)
			second := subscribed(&again, "uid 1", alias)
			third := subscribed(&part, "uid 2", "x://same")
			wait.Until(t, "all subscriptions hold", func() bool {
				return (k.version < multiRound || acknowledged.Load() == 4) && s.gateway.isAnswered()
			})
			announce := func(from string, n int) { // of several that wait the last is sent
				s.Notice(from, "", resourceUpdated, json.RawMessage(fmt.Sprintf(`{"uri":"x://same","_meta":{"n":%d}}`, n)))
			}
			announce("a", 0)
			all.await(t, "x://same 0")
			announce("b", 1)
			all.await(t, "x://same 0", alias+" 1")
			again.await(t, alias+" 1")
			part.await(t, "x://same 1")

			s.Notice("b", "", resourceUpdated, json.RawMessage(`{"uri":"x://same/part","_meta":{"n":2}}`))
			s.Notice("b", "", resourceUpdated, json.RawMessage(`{"uri":"x://sametime","_meta":{"n":3}}`))
			again.await(t, alias+" 1", alias+"/part 2")
			part.await(t, "x://same 1", "x://same/part 2")

			for _, c := range []*mcpsdk.ClientSession{first, second} {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			wait.Until(t, "a's subscription ends", func() bool { return p.times("a:resources/unsubscribe x://same") == 1 })
			wait.Until(t, "their subscriptions are over", func() bool { return s.gateway.held() == 1 })
			if n := p.times("b:resources/unsubscribe x://same"); n != 0 {
				t.Errorf("b's subscription has ended %d times while somebody watches", n)
			}
			before := p.times("b:resources/subscribe x://same")
			s.gateway.subscribeAgain(source{origin{entry: "b"}, "x://same", false})
			part.await(t, "x://same 1", "x://same/part 2", "x://same <nil>")
			if p.times("b:resources/subscribe x://same") != before+1 {
				t.Error("b is not asked again")
			}
			if err := third.Close(); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "b's subscription ends", func() bool { return p.times("b:resources/unsubscribe x://same") == 1 })
		})
	}
}

// Where an identity's calls have a kept process of their own, what that announces is no
// other's, and neither is it where its subscription begins anew.
func TestUpdatesOfAnIdentity(t *testing.T) {
	k := kinds[2]
	s := playedServers(t, &played{}, kept(serverOf("b", []string{"x://same"}, nil)))
	s.config.Share = func(identity string) string { return identity }
	url := forPeers(t, s)
	var one, other updates
	for who, u := range map[string]*updates{"uid 1": &one, "uid 2": &other} {
		if err := connectTo(t, transportOf(t, url, who), k, u.options()).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://same"}); err != nil {
			t.Fatal(err)
		}
	}
	announce := func(share string, n int) {
		s.Notice("b", share, resourceUpdated, json.RawMessage(fmt.Sprintf(`{"uri":"x://same","_meta":{"n":%d}}`, n)))
	}
	announce("", 0)
	announce("uid 1", 1)
	one.await(t, "x://same 1")
	announce("uid 2", 2)
	other.await(t, "x://same 2")
	s.gateway.subscribeAgain(source{origin{"b", "uid 1"}, "x://same", false})
	one.await(t, "x://same 1", "x://same <nil>")
	announce("uid 2", 3)
	other.await(t, "x://same 2", "x://same 3")
}

// A part of a source is below it, and nothing else that only begins like it.
func TestPartsOfASource(t *testing.T) {
	for _, test := range []struct {
		of, one source
		rest    string
		is      bool
	}{
		{source{origin{entry: "a"}, "file:///d", false}, source{origin{entry: "a"}, "file:///d", false}, "", true},
		{source{origin{entry: "a"}, "file:///d", false}, source{origin{entry: "a"}, "file:///d/x", false}, "/x", true},
		{source{origin{entry: "a"}, "file:///d/", false}, source{origin{entry: "a"}, "file:///d/x", false}, "x", true},
		{source{origin{entry: "a"}, "file:///d", false}, source{origin{entry: "a"}, "file:///dx", false}, "x", false},
		{source{origin{entry: "a"}, "file:///d", false}, source{origin{entry: "b"}, "file:///d", false}, "", false},
		{source{origin{"a", "uid 1"}, "file:///d", false}, source{origin{"a", "uid 2"}, "file:///d", false}, "", false},
		{source{origin{entry: "a"}, "file:///d/x", false}, source{origin{entry: "a"}, "file:///d", false}, "", false},
	} {
		if rest, is := test.of.below(test.one); is != test.is || is && rest != test.rest {
			t.Errorf("%v below %v: %q, %t", test.one, test.of, rest, is)
		}
	}
}

// held counts the subscriptions.
func (g *gateway) held() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, own := range g.watched {
		n += len(own)
	}
	return n
}

// isAnswered says whether no request that subscribes waits for its answer.
func (g *gateway) isAnswered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.early) == 0
}

// A URI that leads elsewhere when it is subscribed to again ends what it led to.
func TestASubscriptionMoves(t *testing.T) {
	p := &played{}
	s := playedServers(t, p)
	by := &mcpsdk.ServerSession{}
	s.known[by] = &known{} // whose end nobody waits for
	old, fresh := source{origin{entry: "a"}, "x://1", false}, source{origin{entry: "b"}, "x://1", false}
	for i, one := range []source{old, old, fresh} {
		before, err := s.gateway.watch(t.Context(), by, "x://1", one)
		if want := []source{{}, old, old}[i]; err != nil || before != want {
			t.Errorf("before it was %v, want %v, %v", before, want, err)
		}
	}
	s.gateway.release(old, fresh, source{})
	wait.Until(t, "the old one ends", func() bool { return p.times("a:resources/unsubscribe x://1") == 1 })
	if p.times("b:resources/unsubscribe x://1") != 0 {
		t.Error("the new one ends")
	}
}

// Without a process that is kept nobody could announce a change: a client is told that.
func TestSubscriptionsNeedKeep(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			p := &played{}
			s := playedServers(t, p, serverOf("a", []string{"x://1"}, nil))
			err := connect(t, s, k, nil).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"})
			if k.version < multiRound && (err == nil || !strings.Contains(err.Error(), "no subscription to resources of a: each request to it has a process of its own") || !strings.Contains(err.Error(), "set keep: true")) {
				t.Errorf("%v", err)
			}
			if len(p.asked) > 0 || s.gateway.held() > 0 {
				t.Errorf("%q", p.asked)
			}
		})
	}
}

// An update that comes while a subscription is made reaches its client all the same, and
// no stream begins with one.
func TestUpdatesBeforeTheAnswer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := &played{}
			s := playedServers(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
			p.meanwhile = func(name string) {
				if name == "a:resources/subscribe" {
					s.Notice("a", "", resourceUpdated, json.RawMessage(`{"uri":"x://1","_meta":{"n":1}}`))
					s.Notice("a", "", resourceUpdated, json.RawMessage(`{"uri":"x://1/part","_meta":{"n":2}}`))
				}
			}
			var u updates
			var acknowledged atomic.Bool
			client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "early"}, u.options())
			client.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
				return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
					switch {
					case method == "notifications/subscriptions/acknowledged":
						acknowledged.Store(true)
					case method == resourceUpdated && k.version >= multiRound && !acknowledged.Load():
						t.Error("a stream begins with an update")
					}
					return next(ctx, method, r)
				}
			})
			c := attach(t, s, k, client)
			if err := c.Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}); err != nil {
				t.Fatal(err)
			}
			u.await(t, "x://1 1", "x://1/part 2")
			s.gateway.mu.Lock()
			defer s.gateway.mu.Unlock()
			if len(s.gateway.early) > 0 {
				t.Errorf("updates are still held: %v", s.gateway.early)
			}
		})
	}
}

// What waits for an answer is bounded, in parts and in bytes, and says then that all may
// have changed. One that comes again takes no more room.
func TestEarlyUpdatesAreBounded(t *testing.T) {
	long := json.RawMessage(`{"_meta":{"k":"` + strings.Repeat("x", maxEarlyBytes/4) + `"}}`)
	for _, test := range []struct {
		params      json.RawMessage
		fits, parts int
	}{{json.RawMessage(`{}`), maxEarly, maxEarly}, {long, 3, maxEarly}, {long, 64, 3}} {
		e := &early{updates: map[string]json.RawMessage{}}
		add := func(n int) { e.add(fmt.Sprint("/", n%test.parts), test.params) }
		for n := range test.fits {
			add(n)
		}
		if want := min(test.fits, test.parts); len(e.updates) != want || e.updates["/0"] == nil {
			t.Errorf("%d of %d parts are told apart", len(e.updates), want)
		}
		e.add("/another", test.params)
		if all, is := e.updates[""]; len(e.updates) != 1 || !is || all != nil || e.bytes != 0 {
			t.Errorf("%q, %d bytes", e.updates, e.bytes)
		}
	}
}
