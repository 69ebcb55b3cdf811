// Command mcp-go prints what a client of mark3labs/mcp-go sees of toolhost, as JSON: mcp-go PLAN. See use_test.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type plan struct {
	Version, Server, URL, Token, Mark string
	Command                           []string
}

type seen struct {
	Protocol  string   `json:"protocol"`
	Progress  []string `json:"progress"`
	Cancelled string   `json:"cancelled"`
	Form      string   `json:"form"`
	Sample    string   `json:"sample"`
	Parallel  int      `json:"parallel"`
	Flood     string   `json:"flood"`
	Wide      int      `json:"wide"`
}

func main() {
	var p plan
	err := json.Unmarshal([]byte(os.Args[1]), &p)
	if err == nil {
		err = use(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type human struct{}

func (human) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"user_name": "Ada"}}}, nil
}

type model struct{}

func (model) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{Model: "m", SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("Paris")}}, nil
}

func wired(p plan) (transport.Interface, error) {
	if p.URL != "" {
		options := []transport.StreamableHTTPCOption{transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + p.Token})}
		if !mcp.IsModernProtocol(p.Version) { // 2026-07-28 has removed that stream
			options = append(options, transport.WithContinuousListening())
		}
		return transport.NewStreamableHTTP(p.URL, options...)
	}
	return transport.NewStdioWithOptions(p.Command[0], os.Environ(), p.Command[1:]), nil
}

func use(p plan) error {
	wire, err := wired(p)
	if err != nil {
		return err
	}
	c := client.NewClient(wire, client.WithElicitationHandler(human{}), client.WithSamplingHandler(model{}), client.WithProtocolVersion(p.Version))
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		return err
	}
	defer c.Close()
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1"}
	begun, err := c.Initialize(ctx, hello)
	if err != nil {
		return err
	}
	u := &user{c: c, p: p, heard: map[string]func(string){}}
	c.OnNotification(u.notified)
	s := seen{Protocol: begun.ProtocolVersion}
	if err := u.see(ctx, &s); err != nil {
		return err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fmt.Println(string(raw))
	return nil
}

type user struct {
	c *client.Client
	p plan

	mu    sync.Mutex
	heard map[string]func(message string) // by progress token
}

func (u *user) notified(n mcp.JSONRPCNotification) {
	token, _ := n.Params.AdditionalFields["progressToken"].(string)
	message, _ := n.Params.AdditionalFields["message"].(string)
	u.mu.Lock()
	hear := u.heard[token]
	u.mu.Unlock()
	if n.Method == "notifications/progress" && hear != nil {
		hear(message)
	}
}

func (u *user) call(ctx context.Context, name string, given map[string]any, hear func(string)) (string, error) {
	r := mcp.CallToolRequest{}
	r.Params.Name, r.Params.Arguments = name, given
	if hear != nil {
		u.mu.Lock()
		token := fmt.Sprint("token-", len(u.heard))
		u.heard[token] = hear
		u.mu.Unlock()
		r.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	result, err := u.c.CallTool(ctx, r)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(mcp.TextContent); ok {
			all.WriteString(t.Text)
		}
	}
	return all.String(), nil
}

func (u *user) see(ctx context.Context, s *seen) (err error) {
	of := func(tool string) string { return u.p.Server + "__" + tool }
	var progress struct {
		sync.Mutex
		list []string
	}
	if _, err := u.call(ctx, of("progress"), nil, func(m string) {
		progress.Lock()
		defer progress.Unlock()
		progress.list = append(progress.list, m)
	}); err != nil {
		return err
	}
	progress.Lock()
	s.Progress = progress.list
	progress.Unlock()
	cancelled, cancel := context.WithCancel(ctx)
	if _, err := u.call(cancelled, of("hang"), map[string]any{"mark": u.p.Mark}, func(string) { cancel() }); err != nil {
		s.Cancelled = err.Error()
	}
	cancel()
	if s.Form, err = u.call(ctx, of("form"), nil, nil); err != nil {
		return err
	}
	if s.Sample, err = u.call(ctx, of("sample"), nil, nil); err != nil {
		return err
	}
	var right atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			word := fmt.Sprint("word ", i)
			if said, err := u.call(ctx, of("echo"), map[string]any{"text": word}, nil); err == nil && said == word {
				right.Add(1)
			}
		})
	}
	all.Wait()
	s.Parallel = int(right.Load())
	if s.Flood, err = u.call(ctx, "flood", nil, nil); err != nil {
		return err
	}
	wide, err := u.call(ctx, of("wide"), nil, nil)
	s.Wide = len(wide)
	return err
}
