package mcpserver

import (
	"context"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
)

// A tool of a server that did not start is not unknown: the call says why, whether
// the tools have been listed or not.
func TestToolOfAServerThatDidNotStart(t *testing.T) {
	for name, listing := range map[string]chan struct{}{"listed": nil, "not yet listed": make(chan struct{})} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, setup{listing: listing})
			find := s.config.Find
			s.config.Find = func(ctx context.Context, name string) (catalog.Tool, error) {
				if !strings.HasPrefix(name, "git__") {
					return find(ctx, name)
				}
				return catalog.Tool{}, &catalog.DescribeError{Entry: config.Tool{Name: "git"}, Result: supervisor.Verdict{
					Tool: "git", Status: api.StatusStartFailed, Reason: api.ReasonServer, Message: `[FAILED] Tool "git" could not be started: it wrote to stderr: no such folder`,
				}.Result()}
			}
			c := connect(t, s, kinds[0], nil)
			r := invoke(t, c, &mcpsdk.CallToolParams{Name: "git__log", Arguments: map[string]any{}})
			if own := execution(t, r); !r.IsError || own.Status != api.StatusStartFailed || !strings.Contains(text(r), "no such folder") {
				t.Errorf("%+v %s", r, text(r))
			}
		})
		if listing != nil {
			close(listing)
		}
	}
}
