package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// An update reaches those who have subscribed to that resource of that server, by the
// URI that each has subscribed to it by: an alias, or one that leads another client, who
// may use other servers, elsewhere. A server's subscription lasts as long as any of them.
func TestUpdatesReachWhoSubscribed(t *testing.T) {
	for _, k := range kinds[2:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := &played{}
			s := play(t, p, kept(serverOf("a", []string{"x://same"}, nil)), kept(serverOf("b", []string{"x://same"}, nil)))
			var acknowledged atomic.Int32
			s.sdk.AddSendingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
				return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
					if method == "notifications/subscriptions/acknowledged" {
						acknowledged.Add(1)
					}
					return next(ctx, method, r)
				}
			})
			var all, again, part updates
			subscribed := func(u *updates, who string, uris ...string) *mcpsdk.ClientSession {
				c := s.connect(t, k, who, u.options())
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
				return (k.version < MultiRound || acknowledged.Load() == 4) && s.subscriptions.isAnswered()
			})
			announce := func(from string, n int) { // of several that wait the last is sent
				s.Notice(Origin{from, ""}, resourceUpdated, json.RawMessage(fmt.Sprintf(`{"uri":"x://same","_meta":{"n":%d}}`, n)))
			}
			announce("a", 0)
			all.await(t, "x://same 0")
			announce("b", 1)
			all.await(t, "x://same 0", alias+" 1")
			again.await(t, alias+" 1")
			part.await(t, "x://same 1")

			s.Notice(Origin{"b", ""}, resourceUpdated, json.RawMessage(`{"uri":"x://same/part","_meta":{"n":2}}`))
			s.Notice(Origin{"b", ""}, resourceUpdated, json.RawMessage(`{"uri":"x://sametime","_meta":{"n":3}}`))
			again.await(t, alias+" 1", alias+"/part 2")
			part.await(t, "x://same 1", "x://same/part 2")

			for _, c := range []*mcpsdk.ClientSession{first, second} {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			wait.Until(t, "a's subscription ends", func() bool { return p.times("a:resources/unsubscribe x://same") == 1 })
			wait.Until(t, "their subscriptions are over", func() bool { return s.subscriptions.held() == 1 })
			if n := p.times("b:resources/unsubscribe x://same"); n != 0 {
				t.Errorf("b's subscription has ended %d times while somebody watches", n)
			}
			before := p.times("b:resources/subscribe x://same")
			s.renewSubscription(source{Origin{Entry: "b"}, "x://same", false})
			part.await(t, "x://same 1", "x://same/part 2", "x://same <nil>")
			if p.times("b:resources/subscribe x://same") != before+1 {
				t.Error("b is not asked again")
			}
			if err := third.Close(); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "b's subscription ends", func() bool { return p.times("b:resources/unsubscribe x://same") == 1 })
			wait.Until(t, "no stream is remembered", func() bool {
				s.subscriptions.mu.Lock()
				defer s.subscriptions.mu.Unlock()
				return len(s.subscriptions.streams) == 0
			})
		})
	}
}

// Where an identity's calls have a kept process of their own, what that announces is no
// other's, and neither is it where its subscription begins anew.
func TestUpdatesOfAnIdentity(t *testing.T) {
	k := kinds[2]
	s := play(t, &played{own: true}, kept(serverOf("b", []string{"x://same"}, nil)))
	var one, other updates
	for who, u := range map[string]*updates{"uid 1": &one, "uid 2": &other} {
		if err := s.connect(t, k, who, u.options()).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://same"}); err != nil {
			t.Fatal(err)
		}
	}
	announce := func(share string, n int) {
		s.Notice(Origin{"b", share}, resourceUpdated, json.RawMessage(fmt.Sprintf(`{"uri":"x://same","_meta":{"n":%d}}`, n)))
	}
	announce("", 0)
	announce("uid 1", 1)
	one.await(t, "x://same 1")
	announce("uid 2", 2)
	other.await(t, "x://same 2")
	s.renewSubscription(source{Origin{"b", "uid 1"}, "x://same", false})
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
		{source{Origin{Entry: "a"}, "file:///d", false}, source{Origin{Entry: "a"}, "file:///d", false}, "", true},
		{source{Origin{Entry: "a"}, "file:///d", false}, source{Origin{Entry: "a"}, "file:///d/x", false}, "/x", true},
		{source{Origin{Entry: "a"}, "file:///d/", false}, source{Origin{Entry: "a"}, "file:///d/x", false}, "x", true},
		{source{Origin{Entry: "a"}, "file:///d", false}, source{Origin{Entry: "a"}, "file:///dx", false}, "x", false},
		{source{Origin{Entry: "a"}, "file:///d", false}, source{Origin{Entry: "b"}, "file:///d", false}, "", false},
		{source{Origin{"a", "uid 1"}, "file:///d", false}, source{Origin{"a", "uid 2"}, "file:///d", false}, "", false},
		{source{Origin{Entry: "a"}, "file:///d/x", false}, source{Origin{Entry: "a"}, "file:///d", false}, "", false},
	} {
		if rest, is := test.of.below(test.one); is != test.is || is && rest != test.rest {
			t.Errorf("%v below %v: %q, %t", test.one, test.of, rest, is)
		}
	}
}

// held counts the subscriptions.
func (s *subscriptions) held() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range s.watched {
		n += len(own)
	}
	return n
}

// isAnswered says whether no request that subscribes waits for its answer.
func (s *subscriptions) isAnswered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) == 0
}

// A URI that leads elsewhere when it is subscribed to again ends what it led to.
func TestASubscriptionMoves(t *testing.T) {
	p := &played{}
	s := play(t, p)
	by := &mcpsdk.ServerSession{}
	old, fresh := source{Origin{Entry: "a"}, "x://1", false}, source{Origin{Entry: "b"}, "x://1", false}
	for i, one := range []source{old, old, fresh} {
		before, err := s.subscriptions.watch(t.Context(), by, "x://1", one)
		if want := []source{{}, old, old}[i]; err != nil || before != want {
			t.Errorf("before it was %v, want %v, %v", before, want, err)
		}
	}
	s.release(old, fresh, source{})
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
			s := play(t, p, serverOf("a", []string{"x://1"}, nil))
			err := s.connect(t, k, "", nil).Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"})
			if k.version < MultiRound && (err == nil || !strings.Contains(err.Error(), "no subscription to resources of a: each request to it has a process of its own") || !strings.Contains(err.Error(), "set keep: true")) {
				t.Errorf("%v", err)
			}
			if len(p.asked) > 0 || s.subscriptions.held() > 0 {
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
			s := play(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
			p.meanwhile = func(name string) {
				if name == "a:resources/subscribe" {
					s.Notice(Origin{"a", ""}, resourceUpdated, json.RawMessage(`{"uri":"x://1","_meta":{"n":1}}`))
					s.Notice(Origin{"a", ""}, resourceUpdated, json.RawMessage(`{"uri":"x://1/part","_meta":{"n":2}}`))
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
					case method == resourceUpdated && k.version >= MultiRound && !acknowledged.Load():
						t.Error("a stream begins with an update")
					}
					return next(ctx, method, r)
				}
			})
			c := s.attach(t, k, "", client)
			if err := c.Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}); err != nil {
				t.Fatal(err)
			}
			u.await(t, "x://1 1", "x://1/part 2")
			if !s.subscriptions.isAnswered() {
				t.Error("updates are still held")
			}
		})
	}
}

// What waits for an answer is bounded, in parts and in bytes, and says then that all may
// have changed. One that comes again takes no more room.
func TestPendingUpdatesAreBounded(t *testing.T) {
	long := json.RawMessage(`{"_meta":{"k":"` + strings.Repeat("x", maxPendingBytes/4) + `"}}`)
	for _, test := range []struct {
		params      json.RawMessage
		fits, parts int
	}{{json.RawMessage(`{}`), maxPending, maxPending}, {long, 3, maxPending}, {long, 64, 3}} {
		e := &pendingUpdates{updates: map[string]json.RawMessage{}}
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
