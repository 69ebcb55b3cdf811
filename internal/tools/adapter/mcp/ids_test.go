package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// pingIDs are ids as servers write them, in order; two of them are one float64.
var pingIDs = []string{`"q"`, `-7`, `1.5`, `1764413694123456789`, `1764413694123456790`}

func init() {
	scripts["pings"] = func(p *peer) {
		p.initialize()
		m := p.call()
		for _, id := range pingIDs {
			p.say(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
		}
		var answered []string
		for range pingIDs {
			answered = append(answered, string(p.next().ID))
		}
		slices.Sort(answered)
		p.text(m, strings.Join(answered, " "))
		p.drain()
	}
}

// A server's request is answered by its id as the server has written it.
func TestIDsOfAServer(t *testing.T) {
	t.Parallel()
	want := "text " + strings.Join(pingIDs, " ")
	if r, o := call1(t, server(t, "pings"), "x", "{}"); o.err != nil || r.text() != want {
		t.Errorf("%q, %v, want %q", r.list(), o.err, want)
	}
}

// A request that is taken back is that of the very id, however text in it is written.

// A request that is taken back is that of the very id, however text in it is written.
func TestTakingBack(t *testing.T) {
	for _, test := range []struct{ id, back string }{
		{`1764413694123456789`, `1764413694123456789`},
		{`"\u00fc"`, `"ü"`},
	} {
		own, cancel := context.WithCancel(t.Context())
		other, cancelOther := context.WithCancel(t.Context())
		w := &wire{requests: map[string]context.CancelFunc{
			idKey(json.RawMessage(test.id)):               cancel,
			idKey(json.RawMessage(`1764413694123456790`)): cancelOther,
		}}
		w.takeBack(json.RawMessage(`{"requestId":` + test.back + `}`))
		if own.Err() == nil || other.Err() != nil {
			t.Errorf("%s takes back %v, and another request %v", test.back, own.Err(), other.Err())
		}
		cancelOther()
	}
}
