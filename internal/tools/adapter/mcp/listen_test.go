package mcp

import (
	"fmt"
	"testing"

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
