package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A client over stdio ends a call that waits for it by the id of a request that was
// answered by a question, be it the first or a later one. An id that is another request's by
// then ends nothing.
func TestCancelledAfterAQuestion(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	for name, calls := range map[string]string{"without a process": `"name":"blocks","arguments":{}`, "with one": `"name":"ask","arguments":{"text":"{\"prompt\":\"go on?\"}"}`} {
		for id, ends := range map[string]bool{"1": true, "2": true, "3": false, `"1"`: false} {
			s := statelessServer(t, Config{})
			w := newSpeaker(t, s)
			call := func(id int, more string) string {
				return w.ask(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s,%s%s}}`, id, meta, calls, more))
			}
			state := object.Text(object.Of([]byte(call(1, "")))["result"], "requestState")
			again := object.Text(object.Of([]byte(call(2, `,"requestState":"`+state+`"`)))["result"], "requestState")
			if state == "" || again == "" {
				t.Fatalf("%s: the states are %q and %q", name, state, again)
			}
			w.ask(t, `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{`+meta+`}}`)
			w.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			if !ends {
				w.ask(t, `{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{`+meta+`}}`)
				if len(s.running()) != 1 {
					t.Errorf("%s: %s has ended the call", name, id)
				}
			} else {
				wait.Until(t, "the call is over", func() bool { return len(s.running()) == 0 })
				if said := call(5, `,"requestState":"`+state+`"`); !strings.Contains(said, "[CANCELLED]") || !strings.Contains(said, `"reason":"user"`) {
					t.Errorf("%s: it has ended as %s", name, said)
				}
			}
			w.end(t)
		}
	}
}
