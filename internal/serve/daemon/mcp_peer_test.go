package daemon

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// humanWho answers every question alike.
func humanWho(action string) *mcpsdk.ClientOptions {
	return &mcpsdk.ClientOptions{ElicitationHandler: func(context.Context, *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
		return &mcpsdk.ElicitResult{Action: action, Content: map[string]any{"always": true}}, nil
	}}
}

// What one client's human is asked, and allows, is no matter of another's, though
// both are the same user's and have the same name.
func TestMCPClientsOfOneName(t *testing.T) {
	t.Parallel()
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, "  careful: {command: [echo, done], mode: ask, concurrency: exclusive}\n")
			w.daemon()
			call := &mcpsdk.CallToolParams{Name: "careful"}
			asked := make(chan struct{}, 1)
			gone := &mcpsdk.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
				asked <- struct{}{}
				select {
				case <-ctx.Done():
				case <-t.Context().Done():
				}
				return nil, context.Canceled
			}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			abandoner := w.mcpClient(version, gone)
			go func() { _, _ = abandoner.CallTool(ctx, call) }()
			<-asked
			for action, allowed := range map[string]bool{"accept": true, "decline": false} {
				for range 2 {
					r, err := w.mcpClient(version, humanWho(action)).CallTool(wait.Context(t), call)
					if err != nil || r.IsError == allowed {
						t.Errorf("%s: %v, %+v", action, err, r)
					}
				}
			}
		})
	}
}

// A session is of the one who has authenticated when it began: its id is not a key
// to it for others.
func TestMCPSessionIsItsOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	session := w.mcpClient("2025-11-25", nil)
	token, err := os.ReadFile(filepath.Join(w.State, TokenName))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, d.tcp()+mcpPath, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"Authorization": "Bearer " + strings.TrimSpace(string(token)), "Mcp-Session-Id": session.ID(),
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		} {
			r.Header.Set(key, value)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if got.StatusCode != http.StatusNotFound {
			t.Errorf("%s with the token for a session of a user: %s", method, got.Status)
		}
	}
	if names := w.offered(session); len(names) == 0 {
		t.Error("the session has ended")
	}
}
