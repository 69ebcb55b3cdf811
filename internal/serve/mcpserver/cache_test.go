package mcpserver

import (
	"fmt"
	"strings"
	"testing"
)

// Hints to caches are of 2026-07-28: clients of earlier versions get none.
func TestHintsToCachesAreForThoseThatKnowThem(t *testing.T) {
	t.Parallel()
	s := playedServers(t, &played{}, serverOf("a", []string{"test://x"}, []string{"test://{y}"}))
	for _, request := range []string{`"tools/list","params":{%s}`, `"prompts/list","params":{%s}`, `"resources/list","params":{%s}`, `"resources/templates/list","params":{%s}`} {
		for meta, lines := range map[string][]string{
			``: {saysInitialize, saysInitialized},
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`: nil,
		} {
			answers := spoken(t, s, append(lines, `{"jsonrpc":"2.0","id":1,"method":`+fmt.Sprintf(request, meta)+`}`)...)
			answer := answers[len(answers)-1]
			for _, hint := range []string{`"ttlMs":`, `"cacheScope":"private"`} {
				if !strings.Contains(answer, `"result":{`) || strings.Contains(answer, hint) != (meta != "") {
					t.Errorf("%s: %s", request, answer)
				}
			}
		}
	}
}
