package mcpserver

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A client that closes the stream of its call has gone, up to 2025-11-25; from 2026-07-28 on
// that is how it cancels.
func TestAClosedStream(t *testing.T) {
	t.Parallel()
	for k, want := range map[kind]api.Reason{kinds[2]: api.ReasonDisconnect, kinds[3]: api.ReasonUser} {
		l := &trail{}
		web := overHTTP(t, newServer(t, setup{journal: l}))
		c := connectTo(t, web, k, nil)
		mark := newMark()
		ctx, cancel := context.WithCancel(t.Context())
		meta := `{}`
		if k.version >= multiRound {
			meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		}
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"hang","arguments":{"mark":%q},"_meta":%s}}`, mark, meta)
		r := posted(t, web.Endpoint, call).WithContext(ctx)
		for header, value := range map[string]string{versionHeader: k.version, sessionHeader: c.ID(), "Mcp-Method": "tools/call", "Mcp-Name": "hang"} {
			r.Header.Set(header, value)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if answer, err := web.HTTPClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		waitAlive(t, mark)
		cancel()
		<-over
		wait.Until(t, "the call is aborted", func() bool { return len(l.of(api.EventTurnAbort)) > 0 })
		if got := l.of(api.EventTurnAbort)[0].Reason; got != want {
			t.Errorf("%s: the reason is %s, want %s", k.name, got, want)
		}
		waitGone(t, mark)
	}
}
