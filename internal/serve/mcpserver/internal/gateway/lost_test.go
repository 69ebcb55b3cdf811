package gateway

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A server that refuses to announce a resource again, since it may not have its own lists
// yet, is asked again, and once more when it announces these.
func TestALostSubscription(t *testing.T) {
	var refuses atomic.Bool
	p := &played{fails: func(name string) *jsonrpc.Error {
		if name == "a:resources/subscribe" && refuses.Load() {
			return &jsonrpc.Error{Code: codeNoResource, Message: "Resource not found"}
		}
		return nil
	}}
	s := play(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
	var u updates
	if err := s.connect(t, kinds[0], "", u.options()).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}); err != nil {
		t.Fatal(err)
	}
	asked := func() int { return p.times("a:resources/subscribe x://1") }

	refuses.Store(true)
	before := asked()
	s.soon(func() { s.renewSubscriptions(Origin{Entry: "a"}) })
	wait.Until(t, "it has refused", func() bool { return asked() > before })
	refuses.Store(false)
	u.await(t, "x://1 <nil>")

	refuses.Store(true)
	if s.renewSubscription(source{Origin{Entry: "a"}, "x://1", false}) {
		t.Error("a refused subscription is taken for one")
	}
	refuses.Store(false)
	s.Notice(Origin{Entry: "a"}, "notifications/resources/list_changed", nil)
	u.await(t, "x://1 <nil>", "x://1 <nil>")
	before = asked()
	s.subscribeLost("a")
	if asked() != before {
		t.Error("a subscription that is there is asked for again")
	}
}

// Who subscribes waits until the servers are described.
func TestSubscriptionsWaitForServers(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := &played{listing: make(chan struct{})}
			s := play(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
			var came atomic.Bool
			s.sdk.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
				return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
					if method == "resources/subscribe" || method == "subscriptions/listen" {
						came.Store(true)
					}
					return next(ctx, method, r)
				}
			})
			var u updates
			c := s.connect(t, k, "", u.options())
			subscribed := make(chan error, 1)
			go func() { subscribed <- c.Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}) }()
			wait.Until(t, "it subscribes", came.Load)
			close(p.listing)
			if err := <-subscribed; err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "the server is asked", func() bool { return p.times("a:resources/subscribe x://1") > 0 })
			s.Notice(Origin{Entry: "a"}, resourceUpdated, json.RawMessage(`{"uri":"x://1","_meta":{"n":1}}`))
			u.await(t, "x://1 1")
		})
	}
}

// A server that speaks both generations has a process for each: a subscription begins anew
// in the one that its client's calls are made in.
func TestASubscriptionKeepsItsGeneration(t *testing.T) {
	for _, k := range kinds[:2] {
		p := &played{}
		s := play(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
		var u updates
		if err := s.connect(t, k, "", u.options()).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the server is asked", func() bool { return p.times("a:resources/subscribe x://1") == 1 })
		s.renewSubscriptions(Origin{Entry: "a"})
		u.await(t, "x://1 <nil>")
		p.mu.Lock()
		if want := map[bool]int{true: 2}[k.version < MultiRound]; len(p.asked) != 2 || p.former != want {
			t.Errorf("%s: %d of %q are for clients before 2026-07-28, want %d", k.name, p.former, p.asked, want)
		}
		p.mu.Unlock()
	}
}
