package siege

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// hostileClient does one round of what it does; an error that is wrong is an
// answer that must not be, any other says that there was none.
type hostileClient struct {
	name, why string
	do        func(ctx context.Context, m *mob) error
}

// maxBody is what a body may have.
const maxBody = 8 << 20

// fill repeats text as often as a body has room for.
func fill(before, text, after string) string {
	return before + strings.Repeat(text, (maxBody-len(before)-len(after))/len(text)) + after
}

// hostileClients take turns until there are atOnce.
var hostileClients = slices.Concat(requestClients, turnClients, mcpClients)

// requestClients send what is no request, or one that asks for too much.
var requestClients = []hostileClient{
	{"slow body", "a byte a second", slowBody},
	{"body that never comes", "8 MiB announced, nothing sent", announced},
	{"body without end", "chunks of a byte", chunked},
	{"many calls", "8 MiB of calls without anything", func(ctx context.Context, m *mob) error {
		return m.post(ctx, "/api/turns/x/calls", fill(`{"calls":[{}`, ",{}", "]}"), 400, 404, 408, 413)
	}},
	{"many numbers", "8 MiB of small elements in arguments", manyNumbers},
	{"deep body", "nested as deep as 8 MiB allow", func(ctx context.Context, m *mob) error {
		return m.post(ctx, "/api/turns", fill(`{"agentId":`, "[", ""), 400, 408)
	}},
	{"twin keys", "a key twice, behind 500,000 others", twinKeys},
	{"large body", "a byte more than may be", func(ctx context.Context, m *mob) error {
		return m.post(ctx, "/api/turns", fill("", " ", "    ")+strings.Repeat(" ", 16), 413)
	}},

	{"header flood", "64 KiB of headers", func(ctx context.Context, m *mob) error {
		return m.exchange(ctx, m.head("GET", "/api/tools", "X-Flood: "+strings.Repeat("x", 64<<10)), 431)
	}},
	{"half open", "connections that say half a request", halfOpen},
	{"pipelining", "200 requests, and no answer is read", pipelining},
	{"wrong token", "the token of another daemon", wrongToken},
	{"bad paths", "names that lead elsewhere", func(ctx context.Context, m *mob) error {
		return m.exchange(ctx, m.head("GET", "/api/history/turns/..%2f..%2f..%2fetc%2fpasswd/events"), 404)
	}},
	{"all of history", "the longest lists that there are", lists},

	{"made-up names", "a thousand tools that there are not", madeUp("nosuch")},
	{"made-up names of a server", "a thousand tools of a server that hangs", madeUp(mcpHang + "__")},
	{"forbidden", "a tool that nobody may call, whose binary hangs", forbidden},
}

// exchange sends a request as it is written and wants one of these statuses.
func (m *mob) exchange(ctx context.Context, request string, statuses ...int) error {
	w, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	go func() { _, _ = io.WriteString(w, request) }()
	return w.answered(statuses...)
}

func slowBody(ctx context.Context, m *mob) error {
	w, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = io.WriteString(w, m.head("POST", "/api/turns", asJSON, "Content-Length: 1000"))
	for n := 0; err == nil && n < 10; n++ {
		pause(ctx, time.Second)
		_, err = io.WriteString(w, " ")
	}
	return nil // it may be cut off at any time
}

func announced(ctx context.Context, m *mob) error {
	return m.exchange(ctx, m.head("POST", "/api/turns", asJSON, fmt.Sprintf("Content-Length: %d", maxBody)), 408)
}

func chunked(ctx context.Context, m *mob) error {
	w, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = io.WriteString(w, m.head("POST", "/api/turns", asJSON, "Transfer-Encoding: chunked"))
	for n := 0; err == nil && n < 100_000; n++ {
		_, err = io.WriteString(w, "1\r\n \r\n")
	}
	return nil
}

func manyNumbers(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(_ *client.Client, id string) error {
		// More than arguments may have: an answer, but no call.
		return m.post(ctx, "/api/turns/"+id+"/calls", fill(`{"calls":[{"id":"1","tool":"greet","arguments":{"name":"x","a":[0`, ",0", "]}}]}"), 200, 400, 408, 413)
	})
}

func twinKeys(ctx context.Context, m *mob) error {
	var b strings.Builder
	b.WriteString(`{"agentId":"a"`)
	for n := range 500_000 {
		fmt.Fprintf(&b, `,"%d":0`, n)
	}
	b.WriteString(`,"0":1}`)
	return m.post(ctx, "/api/turns", b.String(), 400, 408, 413)
}

func halfOpen(ctx context.Context, m *mob) error {
	for range 20 {
		w, err := m.dial(ctx)
		if err != nil {
			return err
		}
		defer w.Close()
		request := m.head("GET", "/api/tools")
		_, _ = io.WriteString(w, request[:rand.IntN(len(request))])
	}
	pause(ctx, 5*time.Second)
	return nil
}

func pipelining(ctx context.Context, m *mob) error {
	w, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	_, _ = io.WriteString(w, strings.Repeat(m.head("GET", "/api/openapi.json"), 200))
	pause(ctx, time.Second)
	return nil
}

func wrongToken(ctx context.Context, m *mob) error {
	c, _ := client.New(client.Options{URL: "http://" + m.TCP, Token: strings.Repeat("x", 43)})
	defer c.Close()
	_, err := c.Begin(ctx, headless())
	if err == nil {
		return wrong("it was let in")
	}
	if refusedWith(err, http.StatusTooManyRequests) == nil { // the address has guessed too often
		return nil
	}
	return refusedWith(err, http.StatusUnauthorized)
}

// refusedWith is no error where the daemon has refused with this status.
func refusedWith(err error, status int) error {
	refused, ok := errors.AsType[*api.Error](err)
	switch {
	case err == nil:
		return wrong(fmt.Sprintf("taken, want status %d", status))
	case ok && refused.Status != status && refused.Status != http.StatusServiceUnavailable:
		return wrong(fmt.Sprintf("status %d, want %d: %s", refused.Status, status, refused.Message))
	case ok:
		return nil
	}
	return err
}

func lists(ctx context.Context, m *mob) error {
	c := m.either()
	_, err := c.PastCalls(ctx, api.Filter{Limit: 10_000})
	_, turnsErr := c.PastTurns(ctx, api.Filter{Limit: 10_000})
	_, toolsErr := c.Tools(ctx)
	return errors.Join(err, turnsErr, toolsErr)
}

func madeUp(prefix string) func(context.Context, *mob) error {
	return func(ctx context.Context, m *mob) error {
		spec := headless()
		spec.MaxCalls = 10_000
		return m.turn(ctx, spec, func(c *client.Client, id string) error {
			var calls []api.Call
			for n := range 1000 {
				calls = append(calls, api.Call{ID: fmt.Sprint(n), Tool: fmt.Sprint(prefix, rand.Int64())})
			}
			results, err := c.Run(ctx, id, calls)
			if err == nil && (len(results) != len(calls) || results[0].OK()) {
				return wrong(fmt.Sprintf("%d results, the first %s", len(results), results[0].Status))
			}
			return err
		})
	}
}

func forbidden(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		results, err := c.Run(ctx, id, []api.Call{{ID: "1", Tool: "forbidden"}})
		if err == nil && results[0].Status != "denied" {
			return wrong("it is " + string(results[0].Status))
		}
		return err
	})
}
