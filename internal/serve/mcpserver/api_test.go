package mcpserver

import (
	"context"
	"net"
	"net/http"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/httpapi"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

type noTools struct{}

func (noTools) Tools(context.Context, string) ([]api.Tool, []error) { return nil, nil }

// withToken sends what the API asks for.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.RoundTripper.RoundTrip(r)
}

// Mounted beside the pages of the HTTP API it has the API's rules of access, and
// its streams flow through the API's guard.
func TestBehindTheAPI(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	mounts := map[string]httpapi.Mount{"/mcp": {Need: access.ToRead, Handler: s.Handler()}}
	served, err := httpapi.New(httpapi.Config{Turns: s.config.Turns, Tools: noTools{}, Token: "right", Mounts: mounts})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := served.HTTP()
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() {
		_ = web.Close()
		served.Close()
		s.config.Turns.Close()
		served.Wait()
	})
	transport := func(token string) *mcpsdk.StreamableClientTransport {
		wires := &http.Transport{}
		t.Cleanup(wires.CloseIdleConnections)
		return &mcpsdk.StreamableClientTransport{Endpoint: "http://" + listener.Addr().String() + "/mcp", HTTPClient: &http.Client{Transport: withToken{wires, token}}, MaxRetries: -1}
	}
	for _, token := range []string{"", "wrong"} {
		stranger := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "stranger"}, nil)
		if _, err := stranger.Connect(wait.Context(t), transport(token), nil); err == nil {
			t.Errorf("token %q lets in", token)
		}
	}
	for _, k := range kinds[2:] {
		told := make(chan string, 64)
		c := connectTo(t, transport("right"), k, &mcpsdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcpsdk.ProgressNotificationClientRequest) {
			told <- r.Params.Message
		}})
		p := params("hang", arguments{Mark: newMark()})
		p.SetProgressToken("token")
		r, _ := timedOut(t, c, p)
		if own := execution(t, r); own.Status != api.StatusTimeout {
			t.Errorf("%s", own.Status)
		}
		wait.Until(t, "progress is told", func() bool { return len(told) > 0 })
	}
}
