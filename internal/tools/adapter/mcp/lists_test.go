package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// A server of 2026-07-28 that ends its newest stream of a kind when its tool is told to, by
// a result or by taking it back.
func init() {
	scripts["ends streams"] = func(p *peer) {
		p.modern = true
		opened, newest := map[string]int{}, map[string]message{}
		open := map[string]string{} // kinds, by id
		for {
			switch m := p.next(); m.Method {
			case "server/discover":
				p.answer(m, discovered)
			case "subscriptions/listen":
				kind := "resource"
				if m.param("notifications", "toolsListChanged") == "true" {
					kind = "lists"
				}
				opened[kind]++
				newest[kind], open[string(m.ID)] = m, kind
				p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.param("notifications"), m.ID)
			case "notifications/cancelled":
				delete(open, m.param("requestId"))
				p.answer(message{ID: []byte(m.param("requestId"))}, `{"resultType":"complete"}`)
			case "tools/list":
				p.answer(m, `{"resultType":"complete","tools":[`+plainTool+`]}`)
			case "tools/call":
				one := newest[m.param("arguments", "kind")]
				switch m.param("arguments", "text") {
				case "answers":
					delete(open, string(one.ID))
					p.answer(one, `{"resultType":"complete"}`)
				case "takes back":
					delete(open, string(one.ID))
					p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, one.ID)
				case "takes back by text":
					delete(open, string(one.ID))
					p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}`, one.ID)
				}
				now := map[string]int{}
				for _, kind := range open {
					now[kind]++
				}
				p.text(m, fmt.Sprintf("resource %d of %d, lists %d of %d", now["resource"], opened["resource"], now["lists"], opened["lists"]))
			}
		}
	}
}

// watched has what a server announces taken, until the test ends.
func watched(t *testing.T, a *adapter) (told <-chan string) {
	t.Helper()
	methods := make(chan string, maxNotices)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = a.Watch(ctx, func(method string, _ json.RawMessage) error {
			methods <- method
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-over })
	wait.Until(t, "it is watched", a.watched.Load)
	return methods
}

// A stream that the server ends by itself is not taken for one that lasts: the host is told
// as of the end of a server, and the next request for it opens another one.
func TestAServerEndsItsStreams(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"answers", "takes back", "takes back by text"} {
		a := server(t, "ends streams")
		told := watched(t, a)
		if err := ask(t.Context(), a, subscribe, "x://1"); err != nil {
			t.Fatal(err)
		}
		saysSoon(t, a, "resource 1 of 1, lists 1 of 1")
		says(t, a, `{"kind":"resource","text":"`+how+`"}`)
		if method := <-told; method != mcpcall.ServerEnded {
			t.Errorf("%s: told of %s", how, method)
		}
		saysSoon(t, a, "resource 0 of 1, lists 1 of 2")
		if err := ask(t.Context(), a, subscribe, "x://1"); err != nil {
			t.Fatal(err)
		}
		saysSoon(t, a, "resource 1 of 2, lists 1 of 2")
		says(t, a, `{"kind":"lists","text":"`+how+`"}`)
		if method := <-told; method != mcpcall.ServerEnded {
			t.Errorf("%s: told of %s", how, method)
		}
		saysSoon(t, a, "resource 1 of 2, lists 1 of 3")
	}
}

// Changes of lists are announced on when a subscription has ended, also by a server to which
// that is the end of all streams.
func TestListsOutlastASubscription(t *testing.T) {
	t.Parallel()
	a := server(t, "ends streams")
	watched(t, a)
	for _, method := range []string{subscribe, unsubscribe} {
		if err := ask(t.Context(), a, method, "x://1"); err != nil {
			t.Fatal(err)
		}
	}
	saysSoon(t, a, "resource 0 of 1, lists 1 of 2")
}
