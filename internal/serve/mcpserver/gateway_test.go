package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

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

// A request that panics is answered, and ends nothing else.
func TestAPanicIsAnswered(t *testing.T) {
	s := &Server{config: Config{Logger: hclog.NewNullLogger()}}
	_, err := s.survive(func(context.Context, string, mcpsdk.Request) (mcpsdk.Result, error) {
		var missing *api.Result
		return nil, errors.New(missing.Message)
	})(t.Context(), "completion/complete", nil)
	if e, is := errors.AsType[*jsonrpc.Error](err); !is || e.Code != jsonrpc.CodeInternalError {
		t.Errorf("%v", err)
	}
}

// An answer is for the question that was sent with its state, though a server asks again by
// the same key.
func TestAnAnswerIsForItsQuestion(t *testing.T) {
	s := &Server{states: map[string]*call{}}
	fresh := func() *question {
		return &question{expires: time.Now().Add(time.Hour), answer: make(chan mcpsdk.InputResponse, 1)}
	}
	c := &call{s: s, handle: "h", questions: map[string]*question{"k": fresh()}}
	defer func() { c.parked.Stop() }()
	if asks := c.question(); asks.State != c.stateOf(1) {
		t.Fatal(asks.State)
	}
	c.answered(1, "k", &mcpsdk.ElicitResult{Action: "decline"})
	second := fresh()
	c.questions["k"] = second
	if c.answered(1, "k", &mcpsdk.ElicitResult{Action: "decline"}); len(second.answer) != 0 {
		t.Error("a question that was not sent has an answer")
	}
	for range 2 {
		c.question()
	}
	if c.answered(1, "k", &mcpsdk.ElicitResult{Action: "decline"}); len(second.answer) != 0 {
		t.Error("the second question has the first one's answer")
	}
	if c.answered(2, "k", &mcpsdk.ElicitResult{Action: "decline"}); len(second.answer) != 1 {
		t.Error("the second question has no answer")
	}
}

// What a server changes so that it cannot be offered any more is gone, and said to be left out
// each time.
func TestWhatBecomesUnfitIsNotOffered(t *testing.T) {
	offers := func(arguments, mimeType string) *pluginv1.Server {
		return &pluginv1.Server{
			Prompts:   [][]byte{[]byte(`{"name":"p","arguments":` + arguments + `}`)},
			Resources: [][]byte{[]byte(`{"name":"r","uri":"test://x","mimeType":` + mimeType + `}`)},
		}
	}
	servers := []catalog.Server{serverOf("a", nil, nil)}
	s := playedServers(t, &played{}, servers...)
	client := connect(t, s, kinds[0], nil)
	listed := func() (prompts, resources int) {
		p, err := client.ListPrompts(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Prompts), len(r.Resources)
	}
	for _, test := range []struct {
		offers *pluginv1.Server
		fit    int
	}{
		{offers(`[{"name":"x"}]`, `"text/plain"`), 1},
		{offers(`[{}]`, `5`), 0},
		{offers(`[{}]`, `5`), 0},
		{offers(`[{"name":"x"}]`, `"text/plain"`), 1},
	} {
		servers[0].Offers = test.offers
		problems := s.Reload(t.Context())
		if len(problems) != 2*(1-test.fit) {
			t.Errorf("%q", problems)
		}
		if prompts, resources := listed(); prompts != test.fit || resources != test.fit {
			t.Errorf("%d prompts and %d resources, want %d of each", prompts, resources, test.fit)
		}
	}
}

// What a server has not changed is not announced with what it has.
func TestOnlyWhatHasChangedIsAnnounced(t *testing.T) {
	heard := make(chan string, 100)
	o := &mcpsdk.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcpsdk.ToolListChangedRequest) { heard <- "tools" },
		PromptListChangedHandler:   func(context.Context, *mcpsdk.PromptListChangedRequest) { heard <- "prompts" },
		ResourceListChangedHandler: func(context.Context, *mcpsdk.ResourceListChangedRequest) { heard <- "resources" },
	}
	s := playedServers(t, &played{}, kept(serverOf("a", []string{"x://1"}, nil)))
	c := connect(t, s, kinds[0], o)
	if _, err := c.ListResources(wait.Context(t), nil); err != nil {
		t.Fatal(err)
	}
	for round := range 4 {
		s.Notice("a", "", "notifications/tools/list_changed", nil)
		for got := <-heard; got != "tools"; got = <-heard {
			if round > 1 { // before, the SDK may still announce the first list
				t.Errorf("%s are announced, and tools have changed", got)
			}
		}
	}
}

// Clients of 2026-07-28 never get the error with addresses to open: they get a result,
// or another error.
func TestAddressesToOpenForNewerClients(t *testing.T) {
	p := &played{fails: func(string) *jsonrpc.Error {
		return &jsonrpc.Error{Code: mcpsdk.CodeURLElicitationRequired, Message: "sign in", Data: json.RawMessage(`{"elicitations":[{"mode":"url","url":"https://x/","elicitationId":"e"}]}`)}
	}}
	a := serverOf("a", []string{"x://1"}, nil)
	said := spoken(t, playedServers(t, p, a), `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if !strings.Contains(said[0], `"error":{"code":-32603,`) {
		t.Error(said[0])
	}
	said = spoken(t, playedServers(t, p, a), saysInitialize, saysInitialized, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1"}}`)
	if !strings.Contains(said[1], `"error":{"code":-32042,`) {
		t.Error(said[1])
	}
}

// A client's subscription lasts as long as its session: its updates come from the processes
// that serve it, and the server's subscription ends with the last one.
func TestASubscriptionEndsWithItsSession(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		p := &played{}
		s := playedServers(t, p, kept(serverOf("a", []string{"x://1"}, nil)))
		heard := make(chan string, 100)
		c := connect(t, s, k, &mcpsdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcpsdk.ResourceUpdatedNotificationRequest) {
			heard <- r.Params.URI
		}})
		if err := c.Subscribe(wait.Context(t), &mcpsdk.SubscribeParams{URI: "x://1"}); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the server is asked", func() bool { return p.times("a:resources/subscribe x://1") == 1 })
		wait.Until(t, "the client hears", func() bool { // once its stream is open
			s.Notice("a", "another's", "notifications/resources/updated", json.RawMessage(`{"uri":"x://1/others"}`))
			s.Notice("a", "", "notifications/resources/updated", json.RawMessage(`{"uri":"x://1"}`))
			return len(heard) > 0
		})
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the server's subscription ends", func() bool { return p.times("a:resources/unsubscribe x://1") == 1 })
		for range len(heard) {
			if uri := <-heard; uri != "x://1" {
				t.Errorf("an update of %s", uri)
			}
		}
	})
}
