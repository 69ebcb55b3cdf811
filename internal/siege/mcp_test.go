package siege

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Both generations of the protocol.
const mcpOld, mcpNew = "2025-11-25", "2026-07-28"

// neighbourName is that of the neighbours' clients, which the mob uses as well.
const neighbourName = "neighbour"

// guest is an MCP client that is connected; close goes away without a word.
type guest struct {
	*mcpsdk.ClientSession
	wires *http.Transport
}

func (g *guest) close() {
	go func() { _ = g.Close() }() // may wait for an answer
	g.wires.CloseIdleConnections()
}

// connectMCP comes by the socket.
func (t target) connectMCP(ctx context.Context, name, version string, o *mcpsdk.ClientOptions) (*guest, error) {
	wires := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", t.Socket)
	}}
	c := mcpsdk.NewClient(&mcpsdk.Implementation{Name: name}, o)
	session, err := c.Connect(ctx, &mcpsdk.StreamableClientTransport{Endpoint: "http://localhost/mcp", HTTPClient: &http.Client{Transport: wires}, MaxRetries: 1},
		&mcpsdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	return &guest{session, wires}, nil
}

var mcpClients = []hostileClient{
	{"MCP, leaves a question", "asked for an approval, it is gone, under a neighbour's name", func(ctx context.Context, m *mob) error {
		return m.leavesQuestion(ctx, mcpNew)
	}},
	{"MCP, old, leaves a question", "asked for an approval, it never answers", func(ctx context.Context, m *mob) error {
		return m.leavesQuestion(ctx, mcpOld)
	}},
	{"MCP, another's name", "an exclusive tool under a neighbour's name", func(ctx context.Context, m *mob) error {
		return m.guest(ctx, mcpNew, nil, func(g *guest) error {
			_, err := g.CallTool(ctx, &mcpsdk.CallToolParams{Name: "asks", Arguments: map[string]string{"name": newID()}})
			return err
		})
	}},
	{"MCP, cancels", "gives up hostile calls at random moments", func(ctx context.Context, m *mob) error {
		return m.guest(ctx, anyVersion(), nil, func(g *guest) error {
			ctx, cancel := context.WithTimeout(ctx, rand.N(time.Second))
			defer cancel()
			_, err := g.CallTool(ctx, flooding())
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		})
	}},
	{"MCP, progress", "wants all progress of a flood", func(ctx context.Context, m *mob) error {
		slow := &mcpsdk.ClientOptions{ProgressNotificationHandler: func(ctx context.Context, _ *mcpsdk.ProgressNotificationClientRequest) {
			pause(ctx, time.Second)
		}}
		return m.guest(ctx, anyVersion(), slow, func(g *guest) error {
			p := flooding()
			p.SetProgressToken("token")
			_, err := g.CallTool(ctx, p)
			return err
		})
	}},
	{"MCP, lists", "all tools, of which some hang", func(ctx context.Context, m *mob) error {
		return m.guest(ctx, anyVersion(), nil, func(g *guest) error {
			_, err := g.ListTools(ctx, nil)
			return err
		})
	}},
	{"MCP, session hoarder", "sessions that nobody ends in time", func(ctx context.Context, m *mob) error {
		for range 20 {
			g, err := m.connectMCP(ctx, newID(), mcpOld, nil)
			if err != nil {
				return err
			}
			defer g.close()
		}
		pause(ctx, 5*time.Second)
		return nil
	}},
	{"MCP, no message", "what is no JSON-RPC", func(ctx context.Context, m *mob) error {
		for _, body := range []string{"{", "[]", `{"jsonrpc":"2.0","id":1,"method":"nosuch"}`, `{"id":1,"id":2}`, strings.Repeat("[", 100_000)} {
			if err := m.postMCP(ctx, body); err != nil {
				return err
			}
		}
		return nil
	}},
	{"MCP, many elements", "8 MiB of small elements", func(ctx context.Context, m *mob) error {
		return m.postMCP(ctx, fill(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"a":[0`, ",0", "]}}}"))
	}},
}

func anyVersion() string { return []string{mcpOld, mcpNew}[rand.IntN(2)] }

func flooding() *mcpsdk.CallToolParams {
	return &mcpsdk.CallToolParams{Name: anyTool(), Arguments: json.RawMessage(`{"id":"` + newID() + `"}`)}
}

// guest is one that pretends to be a neighbour.
func (m *mob) guest(ctx context.Context, version string, o *mcpsdk.ClientOptions, do func(*guest) error) error {
	g, err := m.connectMCP(ctx, neighbourName, version, o)
	if err != nil {
		return err
	}
	defer g.close()
	return do(g)
}

func (m *mob) leavesQuestion(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	o := &mcpsdk.ClientOptions{
		MultiRoundTrip: &mcpsdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(ctx context.Context, _ *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	return m.guest(ctx, version, o, func(g *guest) error {
		_, err := g.CallTool(ctx, &mcpsdk.CallToolParams{Name: "asks", Arguments: map[string]string{"name": newID()}})
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		return err
	})
}

// postMCP sends what must be refused, or answered with an error.
func (m *mob) postMCP(ctx context.Context, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.TCP+"/mcp", strings.NewReader(body))
	if err != nil {
		return err
	}
	for key, value := range map[string]string{"Authorization": "Bearer " + m.Token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode < 300 && !strings.Contains(string(said), `"error"`) {
		return wrong("taken: " + string(said[:min(300, len(said))]))
	}
	return err
}
