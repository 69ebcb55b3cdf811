package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/plugin"
)

// askedFor is what a client of a version, with these capabilities, is asked where a
// wrapped server has this request: the next line that it reads.
func askedFor(t *testing.T, version, capabilities, method, params string) string {
	t.Helper()
	q := plugin.Question{Requests: map[string]plugin.ClientRequest{"k": {Method: method, Params: json.RawMessage(params)}}}
	call, err := json.Marshal(asks(t, q))
	if err != nil {
		t.Fatal(err)
	}
	w := newSpeaker(t, newServer(t, setup{}))
	defer w.end(t)
	if version < multiRound {
		w.ask(t, strings.NewReplacer("2025-11-25", version, `"capabilities":{}`, `"capabilities":`+capabilities).Replace(saysInitialize))
		w.say(t, saysInitialized)
		return w.ask(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+string(call)+`}`)
	}
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":` + capabilities + `},`
	return w.ask(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+meta+string(call[1:])+`}`)
}

// Clients of before 2026-07-28 get an id with an address, which servers since then have not.
func TestAnAddressHasAnID(t *testing.T) {
	t.Parallel()
	const open = `{"mode":"url","message":"Sign in","url":"https://example.com/"}`
	for version, want := range map[string]bool{"2025-11-25": true, "2026-07-28": false} {
		said := askedFor(t, version, `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", open)
		if !strings.Contains(said, `"url":"https://example.com/"`) || strings.Contains(said, `"elicitationId":"`) != want {
			t.Errorf("%s: %s", version, said)
		}
	}
}

// Who cannot have an address opened is not asked, and the result says so; who can is, though it
// shows no forms.
func TestAddressesOfClients(t *testing.T) {
	t.Parallel()
	const open = `{"mode":"url","message":"Sign in","url":"https://example.com/"}`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for capability, asked := range map[string]bool{`{}`: false, `{"elicitation":{}}`: false, `{"elicitation":{"form":{}}}`: false, `{"elicitation":{"url":{}}}`: true} {
			said := askedFor(t, version, capability, "elicitation/create", open)
			unasked := strings.Contains(said, `"reason":"headless"`) && strings.Contains(said, "[NOTE] the tool asked a human something, and nobody was there to answer")
			if strings.Contains(said, `"url":"https://example.com/"`) != asked || unasked == asked {
				t.Errorf("%s, %s: %s", version, capability, said)
			}
		}
	}
}

// What a server asks of a client's model arrives as it was written: no zero is lost, no
// field, no digit.
func TestSamplingIsWhole(t *testing.T) {
	t.Parallel()
	const sampling = `{"messages":[{"role":"user","content":{"type":"text","text":""}}],"maxTokens":5,"temperature":0,"modelPreferences":{"costPriority":0},"metadata":{"n":12345678901234567890},"own":1.50,"_meta":{"k":1}}`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		said := askedFor(t, version, `{"elicitation":{},"sampling":{}}`, "sampling/createMessage", sampling)
		if !strings.Contains(said, `"params":`+sampling) || strings.Contains(said, verbatim.Key) {
			t.Errorf("%s: %s", version, said)
		}
	}
}

// A client's model gets tools only where the client declares that it takes some.
func TestSamplingWithTools(t *testing.T) {
	t.Parallel()
	const begin = `{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":5,`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, more := range []string{`"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`, `"toolChoice":{"mode":"none"}}`} {
			for capability, passed := range map[string]bool{`{}`: false, `{"tools":{}}`: true} {
				said := askedFor(t, version, `{"elicitation":{},"sampling":`+capability+`}`, "sampling/createMessage", begin+more)
				refused := strings.Contains(said, "tools for its model (sampling.tools), which it does not declare")
				if strings.Contains(said, `"params":`+begin+more) != passed || refused == passed {
					t.Errorf("%s, %s with %s: %s", version, capability, more, said)
				}
			}
		}
	}
}

// A choice of several is typed as JSON where the version's forms have none.
func TestAChoiceOfSeveral(t *testing.T) {
	t.Parallel()
	choice := json.RawMessage(`{"type":"array","items":{"type":"string","enum":["a","b"]}}`)
	call, err := json.Marshal(asks(t, plugin.Question{Prompt: "Which?", Schema: choice}))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"2025-06-18": `"title":"The answer, as JSON"`, "2025-11-25": `"type":"array"`} {
		said := spoken(t, newServer(t, setup{}), strings.NewReplacer("2025-11-25", version, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`).Replace(saysInitialize),
			saysInitialized, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+string(call)+`}`)
		if !strings.Contains(said[1], `"method":"elicitation/create"`) || !strings.Contains(said[1], want) {
			t.Errorf("%s: %s", version, said[1])
		}
	}
}
