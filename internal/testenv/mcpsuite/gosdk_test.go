//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and clients may still use them

package mcpsuite

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// bearer sends a token along.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// goSDK is a client of the SDK in this process.
func goSDK(t *testing.T, u usage) (s sight) {
	t.Helper()
	var heard sync.Map // by token, what hears progress
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"user_name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "Paris"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if hear, ok := heard.Load(r.Params.ProgressToken); ok {
				hear.(func(string))(r.Params.Message)
			}
		},
	})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: u.URL, HTTPClient: &http.Client{Transport: bearer(u.Token)}}
	if u.URL == "" {
		cmd := exec.Command(u.Command[0], u.Command[1:]...)
		cmd.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: cmd}
	}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: u.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	s.Protocol = session.InitializeResult().ProtocolVersion
	call := func(ctx context.Context, name string, given map[string]any, hear func(string)) string {
		p := &mcp.CallToolParams{Name: name, Arguments: given}
		if hear != nil {
			token := rand.Text()
			heard.Store(token, hear)
			p.SetProgressToken(token)
		}
		result, err := session.CallTool(ctx, p)
		if err != nil {
			s.Cancelled = err.Error()
			return ""
		}
		all := ""
		for _, c := range result.Content {
			if one, ok := c.(*mcp.TextContent); ok {
				all += one.Text
			}
		}
		return all
	}
	ctx := wait.Context(t)
	var mu sync.Mutex
	call(ctx, u.Server+"__progress", nil, func(m string) {
		mu.Lock()
		defer mu.Unlock()
		s.Progress = append(s.Progress, m)
	})
	cancelled, cancel := context.WithCancel(ctx)
	call(cancelled, u.Server+"__hang", map[string]any{"mark": u.Mark}, func(string) { cancel() })
	cancel()
	s.Form, s.Sample = call(ctx, u.Server+"__form", nil, nil), call(ctx, u.Server+"__sample", nil, nil)
	var right atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if word := fmt.Sprint("word ", i); call(ctx, u.Server+"__echo", map[string]any{"text": word}, nil) == word {
				right.Add(1)
			}
		})
	}
	all.Wait()
	s.Parallel = int(right.Load())
	s.Flood, s.Wide = call(ctx, "flood", nil, nil), len(call(ctx, u.Server+"__wide", nil, nil))
	mu.Lock()
	defer mu.Unlock()
	s.Progress = slices.Clone(s.Progress)
	return s
}
