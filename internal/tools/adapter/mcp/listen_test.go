package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/wait"
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
	for _, step := range []struct{ method, want string }{
		{subscribe, "1 opened, 0 ended"},
		{subscribe, "1 opened, 0 ended"},
		{unsubscribe, "1 opened, 1 ended"},
		{unsubscribe, "1 opened, 1 ended"},
		{subscribe, "2 opened, 1 ended"},
	} {
		if err := ask(t.Context(), a, step.method, "x://1"); err != nil {
			t.Fatal(err)
		}
		saysSoon(t, a, step.want)
	}
	if list := a.notices.take(); len(list) != 2 {
		t.Errorf("announced: %q", list)
	}
}

// ask subscribes to a resource, or unsubscribes.
func ask(ctx context.Context, a *adapter, method, uri string) error {
	_, err := a.Request(ctx, method, fmt.Appendf(nil, `{"uri":%q}`, uri), plugin.NewOutput((&record{}).send))
	return err
}

// says is what the server's tool answers.
func says(t *testing.T, a *adapter, arguments string) string {
	t.Helper()
	r, o := call1(t, a, "x", arguments)
	if o.err != nil {
		t.Fatal(o.err)
	}
	return strings.TrimPrefix(r.text(), "text ")
}

// saysSoon waits for what the server says: nobody waits until it has read that a stream is to end.
func saysSoon(t *testing.T, a *adapter, want string) {
	t.Helper()
	wait.Until(t, "the server says "+want, func() bool { return says(t, a, "{}") == want })
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

// A server that acknowledges a stream without what it is asked for.
func init() {
	scripts["declines"] = func(p *peer) {
		p.modern = true
		for {
			switch m := p.next(); m.Method {
			case "server/discover":
				p.answer(m, discovered)
			case "subscriptions/listen":
				given := "{}"
				if strings.Contains(m.param("notifications"), "x://1") {
					given = m.param("notifications")
				}
				p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, given, m.ID)
				if given == "{}" {
					p.answer(m, `{"resultType":"complete"}`)
				}
			}
		}
	}
}

// A subscription that a server declines is refused, as one of an older protocol would.
func TestASubscriptionThatIsDeclined(t *testing.T) {
	t.Parallel()
	a := server(t, "declines")
	if err := ask(t.Context(), a, subscribe, "x://1"); err != nil {
		t.Error(err)
	}
	for range 2 {
		rpc, is := errors.AsType[*plugin.RPCError](ask(t.Context(), a, subscribe, "x://2"))
		if !is || !strings.Contains(string(rpc.Raw), "-32601") {
			t.Errorf("%v", rpc)
		}
	}
}

// waits counts who has begun to wait for a context's end.
type waits struct {
	context.Context
	n atomic.Int32
}

func (w *waits) Done() <-chan struct{} {
	w.n.Add(1)
	return w.Context.Done()
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
	first, behind := &waits{Context: t.Context()}, &waits{Context: t.Context()}
	for _, ctx := range []context.Context{t.Context(), first} { // one opens the stream, one finds it there
		if err := ask(ctx, a, subscribe, "x://1"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := ask(t.Context(), a, unsubscribe, "x://1"); err != nil {
		t.Fatal(err)
	}
	saysSoon(t, a, "1 streams, 1 cancelled")
	again := make(chan error, 1)
	go func() { again <- ask(behind, a, subscribe, "x://1") }()
	wait.Until(t, "it waits for the end, or has asked", func() bool { return behind.n.Load() >= first.n.Load() })
	unended, ended := says(t, a, "{}"), says(t, a, `{"text":"end"}`)
	inTime = time.Since(began) < settleTime
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if list := []string{unended, ended, says(t, a, "{}")}; inTime && !slices.Equal(list, []string{
		"1 streams, 1 cancelled", "0 streams, 0 cancelled", "1 streams, 0 cancelled",
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
	wait.Until(t, "the server is initialized in time", func() bool {
		_, o := call1(t, a, "x", "{}")
		return o.err == nil
	})
	for n := range 2 {
		err := ask(t.Context(), a, subscribe, "x://never")
		if err == nil || !strings.Contains(err.Error(), "has not acknowledged the subscription within 1s") {
			t.Fatalf("it says %v", err)
		}
		saysSoon(t, a, fmt.Sprintf("0 streams, %d cancelled", n+1))
	}
}

// Who joins a stream that is open does so however long it has been.
func TestASubscriptionThatComesLate(t *testing.T) {
	t.Parallel()
	a := startAdapter(t, Options{StartTimeout: time.Second}, argv("mixes streams up")...)
	wait.Until(t, "the server acknowledges in time", func() bool { return ask(t.Context(), a, subscribe, "x://1") == nil })
	acknowledged, state := time.Now(), says(t, a, "{}")
	wait.Until(t, "it would be too late", func() bool { return time.Since(acknowledged) > time.Second })
	for range 20 {
		if err := ask(t.Context(), a, subscribe, "x://1"); err != nil {
			t.Error(err)
		}
	}
	if now := says(t, a, "{}"); now != state {
		t.Errorf("the server says %q, before %q", now, state)
	}
}

// A server that opens a stream and reads nothing more.
func init() {
	scripts["listens and is deaf"] = func(p *peer) {
		p.modern = true
		p.answer(p.await("server/discover"), discovered)
		p.answer(p.await("tools/list"), `{"resultType":"complete","tools":[`+plainTool+`]}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, p.await("subscriptions/listen").ID)
		hang()
	}
}

// Who unsubscribes does not wait for a server that reads nothing.
func TestADeafServerIsUnsubscribed(t *testing.T) {
	t.Parallel()
	a := server(t, "listens and is deaf")
	if _, err := listTools(t, a); err != nil {
		t.Fatal(err)
	}
	if err := ask(t.Context(), a, subscribe, "x://1"); err != nil {
		t.Fatal(err)
	}
	s, err := a.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.wire.notify("notifications/x", params{"fills": big(1 << 20)}) }() // until the server's end
	wait.Until(t, "the pipe is full", func() bool {
		free := s.wire.writing.TryLock()
		if free {
			s.wire.writing.Unlock()
		}
		return !free
	})
	done := make(chan error, 1)
	go func() { done <- ask(t.Context(), a, unsubscribe, "x://1") }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hangLimit):
		t.Fatal("it waits")
	}
}
