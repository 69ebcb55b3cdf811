package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

// A server of 2026-07-28 that announces something with each stream that it opens, and
// tells how many it has opened and ended.
func init() {
	scripts["listens"] = func(p *peer) {
		p.modern = true
		opened, ended := 0, 0
		for {
			switch m := p.next(); m.Method {
			case "server/discover":
				p.answer(m, discovered)
			case "subscriptions/listen":
				opened++
				p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
				p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://1","_meta":{"n":%d}}}`, opened)
			case "notifications/cancelled":
				ended++
				p.answer(message{ID: []byte(m.param("requestId"))}, `{"resultType":"complete"}`)
			case "tools/list":
				p.answer(m, `{"resultType":"complete","tools":[`+plainTool+`]}`)
			case "tools/call":
				p.text(m, fmt.Sprintf("%d opened, %d ended", opened, ended))
			}
		}
	}
}

// All who watch a resource have one stream: a second one would end the first, and what is
// announced in between. It ends once, before there is another. What is announced before
// the host listens is kept for it.
func TestOneStreamForAResource(t *testing.T) {
	t.Parallel()
	a := server(t, "listens")
	for i, step := range []struct{ method, want string }{
		{subscribe, "1 opened, 0 ended"},
		{subscribe, "1 opened, 0 ended"},
		{unsubscribe, "1 opened, 1 ended"},
		{unsubscribe, "1 opened, 1 ended"},
		{subscribe, "2 opened, 1 ended"},
	} {
		if _, err := a.Request(t.Context(), step.method, []byte(`{"uri":"x://1"}`), plugin.NewOutput((&record{}).send)); err != nil {
			t.Fatal(err)
		}
		if r, o := call1(t, a, "x", "{}"); o.err != nil || r.text() != "text "+step.want {
			t.Errorf("step %d: %q, %v; want %q", i, r.text(), o.err, step.want)
		}
	}
	if list := a.notices.take(); len(list) != 2 {
		t.Errorf("announced: %q", list)
	}
}

// A server whose streams for a resource are one to it, as the SDK's are by session: the end
// of one ends the next, if that has begun. It ends what is cancelled only when a tool is
// called for that, and opens none that is named for it.
func init() {
	scripts["mixes streams up"] = func(p *peer) {
		p.modern = true
		var cancelled []message
		streams := 0
		for {
			switch m := p.next(); m.Method {
			case "server/discover":
				p.answer(m, discovered)
			case "subscriptions/listen":
				if strings.Contains(m.param("notifications"), "never") {
					continue
				}
				streams++
				p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
			case "notifications/cancelled":
				cancelled = append(cancelled, message{ID: []byte(m.param("requestId"))})
			case "tools/list":
				p.answer(m, `{"resultType":"complete","tools":[`+plainTool+`]}`)
			case "tools/call":
				if strings.Contains(m.param("arguments"), "end") {
					for _, one := range cancelled {
						p.answer(one, `{"resultType":"complete"}`)
						streams = 0
					}
					cancelled = nil
				}
				p.text(m, fmt.Sprintf("%d streams, %d cancelled", streams, len(cancelled)))
			}
		}
	}
}

// Who subscribes while the last stream for the resource ends has a stream of its own, behind
// that. Nobody else waits for the end: not who unsubscribes.
func TestASubscriptionBehindAnEndingOne(t *testing.T) {
	t.Parallel()
	for tries := 1; !subscribesBehind(t); tries++ {
		if tries == 50 {
			t.Fatalf("what takes a moment takes more than %s each time", settleTime)
		}
	}
}

// subscribesBehind is false where the server has taken longer than it is waited for.
func subscribesBehind(t *testing.T) (inTime bool) {
	a := server(t, "mixes streams up")
	ask := func(method string) error {
		_, err := a.Request(t.Context(), method, []byte(`{"uri":"x://1"}`), plugin.NewOutput((&record{}).send))
		return err
	}
	says := func(arguments string) string {
		r, o := call1(t, a, "x", arguments)
		if o.err != nil {
			t.Fatal(o.err)
		}
		return r.text()
	}
	if err := ask(subscribe); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := ask(unsubscribe); err != nil {
		t.Fatal(err)
	}
	again := make(chan error, 1)
	go func() { again <- ask(subscribe) }()
	unended, ended := says("{}"), says(`{"text":"end"}`)
	inTime = time.Since(began) < settleTime
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if list := []string{unended, ended, says("{}")}; inTime && !slices.Equal(list, []string{
		"text 1 streams, 1 cancelled", "text 0 streams, 0 cancelled", "text 1 streams, 0 cancelled",
	}) {
		t.Errorf("the server says %q", list)
	}
	return inTime
}

// A stream that its server never acknowledges ends, and the request for it says so; the
// next request asks anew.
func TestASubscriptionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	a := startAdapter(t, Options{StartTimeout: time.Second}, argv("mixes streams up")...)
	for n := range 2 {
		_, err := a.Request(t.Context(), subscribe, []byte(`{"uri":"x://never"}`), plugin.NewOutput((&record{}).send))
		if err == nil || !strings.Contains(err.Error(), "has not acknowledged the subscription within 1s") {
			t.Fatalf("it says %v", err)
		}
		want := fmt.Sprintf("text 0 streams, %d cancelled", n+1)
		if r, o := call1(t, a, "x", "{}"); o.err != nil || r.text() != want {
			t.Errorf("%q, %v; want %q", r.text(), o.err, want)
		}
	}
}
