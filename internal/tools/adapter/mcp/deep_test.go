package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// depths are too deep for programs, for the SDK, and for encoding/json.
var depths = []int{200, 3000, 200_000}

func init() {
	for _, depth := range depths {
		scripts[fmt.Sprint("deep ", depth)] = func(p *peer) { sendDeep(p, nested(depth)) }
	}
}

func sendDeep(p *peer, deep string) {
	p.initialize()
	for {
		m := p.call()
		switch what := m.param("arguments", "what"); what {
		case "meta":
			p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":%s}}`, deep)
			p.answer(m, `{"content":[{"type":"text","text":"kept"}],"_meta":{"a":`+deep+`},"theirs":1}`)
		case "field":
			p.answer(m, `{"content":[{"type":"text","text":"kept","_meta":{"a":`+deep+`},"theirs":1}]}`)
		case "structured":
			p.answer(m, `{"content":[{"type":"text","text":"kept"}],"structuredContent":{"a":`+deep+`}}`)
		case "error":
			p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"refused","data":%s}}`, m.ID, deep)
		case "sampling":
			p.say(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"metadata":%s}}`, deep)
			for {
				if answer := p.next(); answer.Method == "" {
					p.text(m, string(answer.Error))
					break
				}
			}
		}
	}
}

// What is nested too deep is left out, of anything that a server sends, with a warning;
// the rest arrives.
func TestDeepMessages(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	for _, depth := range depths {
		call := func(what string) *api.Result {
			r := request(argv(fmt.Sprint("deep ", depth)), "plain", `{"what":"`+what+`"}`, supervisor.Policy{})
			r.Ask = func(_ context.Context, _ supervisor.Question) supervisor.Answer {
				t.Errorf("%d: somebody was asked", depth)
				return supervisor.Answer{}
			}
			return run(t, host, r)
		}
		for what, left := range map[string]string{"meta": `{"theirs":1}`, "field": "", "structured": ""} {
			r := call(what)
			wantOK(t, r, "kept")
			warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "structured_dropped: ") })
			if string(r.Meta) != left || len(r.Structured) > 0 || !warned || what == "meta" && len(r.Warnings) != 2 || what == "field" && string(r.Content[0].Extra) != `{"theirs":1}` {
				t.Errorf("%s %d: meta %.100s, structured %.100s, warnings %q", what, depth, r.Meta, r.Structured, r.Warnings)
			}
		}
		r := call("error")
		if r.Status != api.StatusToolError || string(r.ToolError.RPC) != `{"code":-32000,"message":"refused"}` || len(r.Warnings) != 1 {
			t.Errorf("error %d: %s, %+v, warnings %q", depth, r.Status, r.ToolError, r.Warnings)
		}
		if r := call("sampling"); !strings.Contains(wordsOf(r), `"code"`) || len(r.Warnings) != 1 {
			t.Errorf("sampling %d: %s, %q, warnings %q", depth, r.Status, wordsOf(r), r.Warnings)
		}
	}
}
