package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/verbatim"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serverOf(name string, resources, templates []string) catalog.Server {
	o := &pluginv1.Server{Capabilities: []byte(`{"resources":{}}`)}
	for _, uri := range resources {
		o.Resources = append(o.Resources, []byte(`{"name":"r","uri":"`+uri+`"}`))
	}
	for _, uri := range templates {
		o.Templates = append(o.Templates, []byte(`{"name":"t","uriTemplate":"`+uri+`"}`))
	}
	return catalog.Server{Entry: config.Tool{Name: name}, Offers: o}
}

// kept is a server whose process is.
func kept(one catalog.Server) catalog.Server {
	one.Entry.MCP.Keep = &config.Keep{}
	return one
}

type senderKey struct{}

func withSender(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, senderKey{}, name)
}

func sender(ctx context.Context) string {
	name, _ := ctx.Value(senderKey{}).(string)
	return name
}

// played are calls of wrapped servers that a test plays: each goes well at once.
type played struct {
	meanwhile func(name string) // called during each; nil does nothing
	// fails, if not nil, returns the error that the server answers with, or nil.
	fails func(name string) *jsonrpc.Error
	// listing, if not nil, is what the list of servers waits for to be closed.
	listing chan struct{}
	// own: each identity's calls have kept processes of their own.
	own bool

	mu     sync.Mutex
	asked  []string
	former int // of these, for clients before 2026-07-28
}

func (p *played) call(name string, arguments, client json.RawMessage) *api.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, name+" "+object.Text(arguments, "uri"))
	if version := mcpcall.Of(client).Protocol; version != "" && version < MultiRound {
		p.former++
	}
	if p.meanwhile != nil {
		p.meanwhile(name)
	}
	result := &api.Result{Tool: name, Status: api.StatusOK, Instance: api.InstanceReused}
	if p.fails != nil {
		if e := p.fails(name); e != nil {
			result.Status, result.ToolError = api.StatusToolError, &api.ToolError{Kind: "error", Message: e.Message}
			result.ToolError.RPC, _ = json.Marshal(e)
		}
	}
	return result
}

func (p *played) times(what string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.asked {
		if one == what {
			n++
		}
	}
	return n
}

// playing is a gateway at a server of the SDK's whose wrapped servers are played.
type playing struct {
	*Gateway
	calls sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	tracked map[*mcpsdk.ServerSession]bool
}

func play(t *testing.T, p *played, servers ...catalog.Server) *playing {
	t.Helper()
	loaded := make(chan struct{})
	closing, closes := context.WithCancel(context.Background())
	s := &playing{tracked: map[*mcpsdk.ServerSession]bool{}}
	s.Gateway = New(Host{
		Logger: hclog.NewNullLogger(), Servers: func() []catalog.Server { return servers },
		Renew: func(context.Context, string) error { return nil },
		Identity: func(ctx context.Context) access.Identity {
			of := map[string][]string{"uid 1": nil, "uid 2": {"b:*/*"}}
			return access.Identity{Name: sender(ctx), Roles: []access.Role{access.Admin}, Tools: of[sender(ctx)]}
		},
		Share: func(ctx context.Context) string {
			if p.own {
				return sender(ctx)
			}
			return ""
		},
		Call: func(_ context.Context, r *mcpsdk.CallToolRequest, _ bool) (*api.Result, *verbatim.Inputs, error) {
			return p.call(r.Params.Name, r.Params.Arguments, mcpcall.Client{Protocol: r.ProtocolVersion()}.JSON()), nil, nil
		},
		CallFor: func(_ string, made turn.Call) (*api.Result, error) {
			return p.call(made.Tool, made.Arguments, made.Client), nil
		},
		Receipt: func(*api.Result) json.RawMessage { return json.RawMessage("{}") },
		Track:   s.track, Go: s.soon,
		Reload: func() { s.Describe(); s.Offer() },
		Loaded: loaded, Closing: closing,
	})
	o := &mcpsdk.ServerOptions{Capabilities: &mcpsdk.ServerCapabilities{}}
	s.Declare(o)
	server := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "gateway"}, o)
	s.Attach(server)
	server.AddReceivingMiddleware(s.Receive)
	server.AddSendingMiddleware(s.Send)
	s.soon(func() {
		defer close(loaded)
		if p.listing != nil {
			<-p.listing
		}
		s.Describe()
		s.Offer()
	})
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		closes()
		s.calls.Wait()
	})
	return s
}

func (s *playing) soon(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls.Go(f)
	}
}

func (s *playing) track(one *mcpsdk.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracked[one] {
		return
	}
	s.tracked[one] = true
	go func() {
		_ = one.Wait()
		s.mu.Lock()
		delete(s.tracked, one)
		s.mu.Unlock()
		s.Forget(one)
	}()
}

// kind is how a client speaks with the server.
type kind struct {
	name, version string
	http          bool
}

// kinds are both generations of the protocol, over both kinds of transports.
var kinds = []kind{
	{"2025 in memory", "2025-11-25", false},
	{"2026 in memory", "2026-07-28", false},
	{"2025 over HTTP", "2025-11-25", true},
	{"2026 over HTTP", "2026-07-28", true},
}

// connect gives a client of the server, in the name of who.
func (s *playing) connect(t *testing.T, k kind, who string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	t.Helper()
	return s.attach(t, k, who, mcpsdk.NewClient(&mcpsdk.Implementation{Name: "tester", Version: "1"}, o))
}

// attach connects a client of the test's own.
func (s *playing) attach(t *testing.T, k kind, who string, client *mcpsdk.Client) *mcpsdk.ClientSession {
	t.Helper()
	transport := mcpsdk.Transport(s.overHTTP(t, k, who))
	if !k.http {
		var ours mcpsdk.Transport
		ours, transport = mcpsdk.NewInMemoryTransports()
		session, err := s.sdk.Connect(withSender(t.Context(), who), ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Wait() })
	}
	session, err := client.Connect(wait.Context(t), transport, &mcpsdk.ClientSessionOptions{ProtocolVersion: k.version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// overHTTP serves on loopback whoever sends requests in the name of who.
func (s *playing) overHTTP(t *testing.T, k kind, who string) *mcpsdk.StreamableClientTransport {
	t.Helper()
	handler := mcpsdk.NewStreamableHTTPHandler(func(*http.Request) *mcpsdk.Server { return s.sdk }, &mcpsdk.StreamableHTTPOptions{
		Stateless: k.version >= MultiRound, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(withSender(r.Context(), who)))
	}))
	t.Cleanup(web.Close)
	wires := &http.Transport{}
	t.Cleanup(wires.CloseIdleConnections)
	return &mcpsdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: wires}, MaxRetries: -1}
}

// updates are what a client hears.
type updates struct {
	mu    sync.Mutex
	heard []string
}

func (u *updates) options() *mcpsdk.ClientOptions {
	return &mcpsdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcpsdk.ResourceUpdatedNotificationRequest) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.heard = append(u.heard, fmt.Sprint(r.Params.URI, " ", r.Params.Meta["n"]))
	}}
}

// await waits for as many, in any order: they come by several streams.
func (u *updates) await(t *testing.T, want ...string) {
	t.Helper()
	heard := func() []string {
		u.mu.Lock()
		defer u.mu.Unlock()
		return slices.Sorted(slices.Values(u.heard))
	}
	wait.Until(t, fmt.Sprintf("%q is heard", want), func() bool { return len(heard()) >= len(want) })
	slices.Sort(want)
	if got := heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}
