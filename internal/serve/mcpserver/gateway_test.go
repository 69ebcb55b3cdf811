package mcpserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/directory"
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

// A server's extensions are offered where nothing but content has a part in them.
func TestExtensionsOfServers(t *testing.T) {
	one := serverOf("a", nil, nil)
	one.Offers.Capabilities = []byte(`{"extensions":{"io.modelcontextprotocol/ui":{},"io.modelcontextprotocol/tasks":{},"example.org/own":{}}}`)
	g := gateway{servers: directory.New([]catalog.Server{one})}
	all := g.extensionsFor(access.Identity{})
	if _, tasks := all["io.modelcontextprotocol/tasks"]; tasks || len(all) != 2 {
		t.Errorf("%v", all)
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
