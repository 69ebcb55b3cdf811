package mcp

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`

// greeted is a server that answers discover and initialize in these ways, and the last
// of each again and again.
func greeted(discover, initialize []string) func(*peer) {
	return func(p *peer) {
		p.modern = true
		for {
			m := p.next()
			ways := map[string]*[]string{"server/discover": &discover, "initialize": &initialize}[m.Method]
			if ways == nil {
				continue
			}
			p.say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, (*ways)[0])
			if len(*ways) > 1 {
				*ways = (*ways)[1:]
			}
		}
	}
}

func refusal(code int, text, data string) string {
	return fmt.Sprintf(`"error":{"code":%d,"message":%q,"data":%s}`, code, text, data)
}

func init() {
	found, unknown := `"result":`+discovered, refusal(-32601, "Method not found", "null")
	for role, script := range map[string]func(*peer){
		"refuses a version and names it": greeted(
			[]string{refusal(-32022, "Unsupported protocol version", `{"supported":["2026-07-28"],"requested":"2026-07-28"}`), found},
			[]string{refusal(-32600, "each request must say its version", "null")}),
		"agrees to a version without initialize": greeted([]string{found}, []string{`"result":{"protocolVersion":"2026-07-28","capabilities":{}}`}),
		"supports older versions": greeted(
			[]string{refusal(-32022, "Unsupported protocol version", `{"supported":["2025-11-25"]}`)},
			[]string{`"result":` + initialized}),
		"is slow to be discovered": func(p *peer) {
			p.modern = true
			for {
				switch m := p.next(); m.Method {
				case "server/discover":
					time.Sleep(discoverTime + 100*time.Millisecond)
					p.say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, found)
				case "initialize":
					p.say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, refusal(-32603, "out of order", "null"))
				}
			}
		},
		"refuses initialize alone": func(p *peer) {
			p.modern = true
			for {
				if m := p.next(); m.Method == "initialize" {
					p.say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, refusal(-32603, "no key is set", "null"))
				}
			}
		},
		"knows neither": greeted([]string{unknown}, []string{refusal(-32603, "out of order", "null")}),
	} {
		scripts[role] = script
	}
}

// A server is spoken to in the one way that it knows, whichever is tried first.
func TestTheWayToBegin(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"refuses a version and names it":         "2026-07-28",
		"agrees to a version without initialize": "2026-07-28",
		"supports older versions":                "2025-11-25",
		"knows neither":                          "",
	} {
		a := server(t, role)
		for name, first := range map[string]**session{"discover": &a.current, "initialize": &a.former} {
			s, err := a.ready(t.Context(), a.latest(first))
			switch {
			case want == "":
				if err == nil || !strings.Contains(err.Error(), "out of order") {
					t.Errorf("%s, %s first: %v", role, name, err)
				}
			case err != nil || s.server.ProtocolVersion != want:
				t.Errorf("%s, %s first: %v", role, name, err)
			}
		}
	}
}

// A server that has refused initialize has the rest of startTimeout to be discovered.
func TestDiscoveredSlowly(t *testing.T) {
	t.Parallel()
	a := server(t, "is slow to be discovered")
	s, err := a.ready(t.Context(), a.latest(&a.former))
	if err != nil || s.server.ProtocolVersion != "2026-07-28" {
		t.Error(err)
	}
}

// One that never answers has refused initialize for a reason of its own.
func TestNeverDiscovered(t *testing.T) {
	t.Parallel()
	a := startAdapter(t, Options{StartTimeout: time.Second}, argv("refuses initialize alone")...)
	_, err := a.ready(t.Context(), a.latest(&a.former))
	if err == nil || !strings.Contains(err.Error(), "no key is set; and it has not answered server/discover within 1s: a higher startTimeout") {
		t.Error(err)
	}
}
