package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// identityHeader says who sends a request of a test's.
const identityHeader = "Test-Identity"

// forPeers serves clients who are who they say, on connections that are told
// apart.
func forPeers(t *testing.T, s *Server) (url string) {
	t.Helper()
	type connection struct{}
	var open sync.Map
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := Peer{Identity: r.Header.Get(identityHeader), Connection: r.Context().Value(connection{})}
		s.Handler().ServeHTTP(w, r.WithContext(WithPeer(r.Context(), p)))
	}))
	web.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		one := new(ending)
		open.Store(c, one)
		return context.WithValue(ctx, connection{}, one)
	}
	web.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if one, known := open.Load(c); known && state == http.StateClosed {
			one.(*ending).Store(true)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	return web.URL
}

// ending is a connection that tells whether it has ended.
type ending struct{ atomic.Bool }

func (e *ending) Closed() bool { return e.Load() }

// as sends all requests in the name of who.
type as struct {
	who   string
	wires http.RoundTripper
}

func (a as) CloseIdleConnections() { a.wires.(*http.Transport).CloseIdleConnections() }

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(identityHeader, a.who)
	return a.wires.RoundTrip(r)
}

// transportOf has connections of its own.
func transportOf(t *testing.T, url, who string) *mcpsdk.StreamableClientTransport {
	t.Helper()
	wires := &http.Transport{}
	t.Cleanup(wires.CloseIdleConnections)
	return &mcpsdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: as{who, wires}}, MaxRetries: -1}
}

// clients gives those of a kind, which all name themselves alike.
func clients(t *testing.T, s *Server, k kind) func(who string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
	if !k.http {
		return func(_ string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession { return connect(t, s, k, o) }
	}
	url := forPeers(t, s)
	return func(who string, o *mcpsdk.ClientOptions) *mcpsdk.ClientSession {
		return connectTo(t, transportOf(t, url, who), k, o)
	}
}

// What one client's human allows for a session, no other client's has allowed,
// whatever it calls itself and whoever it is; nor the same client's later.
func TestApprovalsAreOfOneSession(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		newClient := clients(t, newServer(t, setup{adjust: asking}), k)
		yes := says("accept", map[string]any{"always": true})
		a := newClient("uid 1", yes.options())
		if r := invoke(t, a, params("say", arguments{})); r.IsError {
			t.Fatal(text(r))
		}
		again := func(who string) {
			t.Helper()
			no := says("decline", nil)
			c := newClient(who, no.options())
			if own := execution(t, invoke(t, c, params("say", arguments{}))); own.Status != api.StatusDenied || no.times() != 1 {
				t.Errorf("%s, beside uid 1: %s, asked %d times", who, own.Status, no.times())
			}
		}
		again("uid 1")
		again("uid 2")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		again("uid 1")
	})
}

// Where there is no session none is offered to be approved for.
func TestNoApprovalForNoSession(t *testing.T) {
	h := says("accept", map[string]any{"always": true})
	c := clients(t, newServer(t, setup{adjust: asking}), kinds[3])("uid 1", h.options())
	for i := range 2 {
		if r := invoke(t, c, params("say", arguments{Text: strings.Repeat("x", i)})); r.IsError {
			t.Fatal(text(r))
		}
	}
	if h.times() != 2 {
		t.Errorf("asked %d times", h.times())
	}
	if schema, err := json.Marshal(h.asked[0].RequestedSchema); err != nil || strings.Contains(string(schema), "always") {
		t.Errorf("asked with %s, %v", schema, err)
	}
}

// abandon leaves a question without an answer, as a client does that has gone.
func abandon(t *testing.T, s *Server, c *mcpsdk.ClientSession) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = c.CallTool(ctx, params("say", arguments{Text: "abandoned"}))
	}()
	t.Cleanup(func() { cancel(); <-over })
	wait.Until(t, "somebody is asked", func() bool {
		for _, i := range s.config.Turns.Active() {
			if len(i.PendingInteractions) > 0 {
				return true
			}
		}
		return false
	})
}

// silent is asked, and says nothing while the test runs.
func silent(t *testing.T, k kind) *mcpsdk.ClientOptions {
	o := &mcpsdk.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcpsdk.ElicitRequest) (*mcpsdk.ElicitResult, error) {
		select {
		case <-ctx.Done():
		case <-t.Context().Done(): // before the client is closed
		}
		return nil, context.Canceled
	}}
	o.MultiRoundTrip = &mcpsdk.MultiRoundTripOptions{Disabled: k.version >= multiRound}
	return o
}

// An exclusive call whose question nobody answers keeps nobody: neither other
// clients of the same name and user, nor its own.
func TestAnAbandonedQuestionKeepsNobody(t *testing.T) {
	t.Parallel()
	ofEachKind(t, func(t *testing.T, k kind) {
		s := newServer(t, setup{adjust: func(tool *catalog.Tool) {
			if tool.Name == "say" {
				tool.Mode, tool.Exclusive = turn.ModeAsk, true
			}
		}})
		newClient := clients(t, s, k)
		a := newClient("uid 1", silent(t, k))
		abandon(t, s, a)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				yes := says("accept", nil)
				if r := invoke(t, newClient("uid 1", yes.options()), params("say", arguments{Text: "beside"})); text(r) != "beside" {
					t.Errorf("another client's call: %s", text(r))
				}
			})
		}
		all.Wait()
		if r := invoke(t, a, params("blocks", arguments{})); r.IsError {
			t.Errorf("a call of its own: %s", text(r))
		}
	})
}

// A session, and what a call asks, are their owner's alone.
func TestASessionOfAnother(t *testing.T) {
	s := newServer(t, setup{})
	url := forPeers(t, s)
	a := connectTo(t, transportOf(t, url, "uid 1"), kinds[2], nil)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for who, want := range map[string]bool{"uid 2": false, "": false, "uid 1": true} {
			if want && method != http.MethodPost {
				continue
			}
			r, err := http.NewRequestWithContext(wait.Context(t), method, url, bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":77,"method":"ping"}`)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set(sessionHeader, a.ID())
			got, err := transportOf(t, url, who).HTTPClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = got.Body.Close()
			if (got.StatusCode == http.StatusOK) != want || !want && got.StatusCode != http.StatusNotFound {
				t.Errorf("%s by %q: %s", method, who, got.Status)
			}
		}
	}
	if r := invoke(t, a, params("say", arguments{Text: "still"})); text(r) != "still" {
		t.Errorf("its owner's call: %s", text(r))
	}
}

func TestARequestStateOfAnother(t *testing.T) {
	s := newServer(t, setup{})
	newClient := clients(t, s, kinds[3])
	rounds := says("accept", nil).options()
	rounds.MultiRoundTrip = &mcpsdk.MultiRoundTripOptions{Disabled: true}
	first := invoke(t, newClient("uid 1", rounds), params("wipe", arguments{}))
	again := params("wipe", arguments{})
	again.RequestState, again.InputResponses = first.RequestState, mcpsdk.InputResponseMap{}
	for id := range first.InputRequests {
		again.InputResponses[id] = &mcpsdk.ElicitResult{Action: "accept"}
	}
	if _, err := newClient("uid 2", rounds).CallTool(wait.Context(t), again); err == nil || !strings.Contains(err.Error(), "that it answers is closed") {
		t.Errorf("another user's answer: %v", err)
	}
	_, theirs := newClient("uid 2", rounds).CallTool(wait.Context(t), again)
	nobodys := *again
	nobodys.RequestState = "nosuch"
	if _, missing := newClient("uid 2", rounds).CallTool(wait.Context(t), &nobodys); fmt.Sprint(theirs) != fmt.Sprint(missing) {
		t.Errorf("another user's: %v, of none %v", theirs, missing)
	}
	if own := execution(t, invoke(t, newClient("uid 1", rounds), again)); own.Status != api.StatusOK {
		t.Errorf("the same user's answer, by another connection: %s", own.Status)
	}
}

// Of the questions that clients have left behind by going away only the last
// stay; those of clients that are there are kept however old they are.
func TestLeftQuestionsMakeRoom(t *testing.T) {
	s := newServer(t, setup{})
	url := forPeers(t, s)
	rounds := says("accept", nil).options()
	rounds.MultiRoundTrip = &mcpsdk.MultiRoundTripOptions{Disabled: true}
	asked := func(c *mcpsdk.ClientSession) *mcpsdk.CallToolParams {
		t.Helper()
		first := invoke(t, c, params("wipe", arguments{}))
		again := params("wipe", arguments{})
		again.RequestState, again.InputResponses = first.RequestState, mcpsdk.InputResponseMap{}
		for id := range first.InputRequests {
			again.InputResponses[id] = &mcpsdk.ElicitResult{Action: "accept"}
		}
		return again
	}
	stays := connectTo(t, transportOf(t, url, "uid 1"), kinds[3], rounds)
	oldest := asked(stays)
	var left *mcpsdk.CallToolParams
	for range maxLeft + 10 {
		transport := transportOf(t, url, "uid 1")
		if again := asked(connectTo(t, transport, kinds[3], rounds)); left == nil {
			left = again
		}
		transport.HTTPClient.CloseIdleConnections()
	}
	wait.Until(t, "the server knows that they have gone", func() bool { return s.left("uid 1") >= maxLeft })
	wait.Until(t, "the first that were left have ended", func() bool {
		s.endLeft("uid 1")
		return s.left("uid 1") == maxLeft
	})
	if own := execution(t, invoke(t, stays, left)); own.Status != api.StatusCancelled {
		t.Errorf("the first that was left: %s", own.Status)
	}
	if own := execution(t, invoke(t, stays, oldest)); own.Status != api.StatusOK {
		t.Errorf("the oldest question, of a client that is there: %s", own.Status)
	}
}

// left counts what connections of an identity have left behind.
func (s *Server) left(identity string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leftBy(identity))
}

// What a client calls itself is its own calls' only, however many there are.
func TestNamesAreOfTheirOwnCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{Config: Config{Timeout: func(client string) time.Duration {
		if client == "hasty" {
			return 8 * time.Second
		}
		return time.Hour
	}}})
	url := forPeers(t, s)
	named := func(name string) *mcpsdk.ClientSession {
		c, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: name}, nil).Connect(wait.Context(t), transportOf(t, url, "uid 1"), &mcpsdk.ClientSessionOptions{ProtocolVersion: newest})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for _, name := range []string{"patient", ""} {
		if r := invoke(t, named(name), params("say", arguments{})); r.IsError {
			t.Fatal(text(r))
		}
	}
	if own := execution(t, invoke(t, named("hasty"), params("hang", arguments{Mark: newMark()}))); own.Status != api.StatusTimeout && own.Reason != api.ReasonTimeout {
		t.Errorf("a client that waits for eight seconds: %s, %s", own.Status, own.Message)
	}
}

// No identity takes what another one needs, nor has calls of two connections
// anything in common once there is no place to remember them.
func TestSharesOfIdentities(t *testing.T) {
	s := &Server{loose: map[Peer]*session{}}
	seen := map[*session]bool{}
	for i := range 2 * maxLoose {
		one := s.looseOf(Peer{"uid 1", i})
		if seen[one] {
			t.Fatal("two connections share a session")
		}
		seen[one] = true
	}
	if len(s.loose) != maxLoose/2 {
		t.Errorf("%d of %d places are one identity's", len(s.loose), maxLoose)
	}
	for _, who := range []string{"uid 2", "uid 3"} {
		p := Peer{who, 1}
		if first := s.looseOf(p); first != s.looseOf(p) {
			t.Errorf("%s has no place", who)
		}
	}
	unknown := Peer{Identity: "uid 1"}
	if first := s.looseOf(unknown); first == s.looseOf(unknown) {
		t.Error("calls whose connection is not known share a session")
	}
}

// What to the SDK is a session for one request alone takes no session's place.
func TestRequestsWithoutASessionTakeNoPlace(t *testing.T) {
	s := newServer(t, setup{})
	for range maxSessions {
		ours, _ := mcpsdk.NewInMemoryTransports()
		one, err := s.sdk.Connect(t.Context(), ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = one.Close() })
	}
	if !s.mayConnect("uid 1") {
		t.Errorf("no session can be begun beside %d requests", maxSessions)
	}
}
