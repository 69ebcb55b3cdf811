package mcpserver

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

// Over one connection several streams may be for the same resource: its updates come until
// the last of these ends, by the id of one that is open.
func TestStreamsForTheSameResource(t *testing.T) {
	p := &played{}
	s := playedServers(t, p, kept(serverOf("a", []string{"x://1", "x://2"}, nil)))
	var ended atomic.Int32
	s.sdk.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		return func(ctx context.Context, method string, r mcpsdk.Request) (mcpsdk.Result, error) {
			if method == "subscriptions/listen" {
				defer ended.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	w := newSpeaker(t, s)
	defer w.end(t)
	hears := func(what, said string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Fatalf("%s: no %s in %s", what, part, said)
			}
		}
	}
	listen := func(id int, uris string) {
		t.Helper()
		hears("listen", w.ask(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[%s]},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, uris)), "acknowledged", fmt.Sprintf(`subscriptionId":%d`, id))
	}
	end := func(id int) {
		t.Helper()
		before := ended.Load()
		w.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		wait.Until(t, "the stream ends", func() bool { return ended.Load() > before })
	}
	updated := func(by int) {
		t.Helper()
		s.Notice("a", "", "notifications/resources/updated", json.RawMessage(`{"uri":"x://1"}`))
		said, err := w.from.next()
		if err != nil {
			t.Fatal(err)
		}
		hears("update", string(said), "notifications/resources/updated", "x://1", fmt.Sprintf(`subscriptionId":%d`, by))
	}
	listen(1, `"x://1"`)
	listen(2, `"x://1","x://2"`)
	end(1)
	updated(2)
	listen(3, `"x://1"`)
	end(3)
	updated(2)
	if p.times("a:resources/unsubscribe x://1") != 0 {
		t.Errorf("asked %q", p.asked)
	}
	end(2)
	if p.times("a:resources/unsubscribe x://1") != 1 {
		t.Errorf("asked %q", p.asked)
	}
}
