package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/supervisor"
	"github.com/toolhost/toolhost/turn"
)

// exclusive has all tools run alone.
func exclusive(tool *catalog.Tool) { tool.Exclusive = true }

// statelessServer offers the test binary's tools, all exclusive. A process of blocks ends with a
// question before another one has its result, as a stateless server's does; one of fail
// is there while it asks.
func statelessServer(t *testing.T, c Config) *Server {
	t.Helper()
	return newServer(t, setup{Config: c, adjust: exclusive, start: startStateless})
}

// starter begins calls.
type starter = func(context.Context, supervisor.Request) turn.Running

func startStateless(hosts starter) starter {
	return func(ctx context.Context, r supervisor.Request) turn.Running {
		switch {
		case r.Tool.Name == "fail":
			return asksAlive{r.Ask, make(chan struct{}), new(sync.Once)}
		case r.Tool.Name != "blocks", strings.Contains(string(r.Client), "inputResponses"):
			return hosts(ctx, r)
		}
		result := supervisor.Verdict{Status: api.StatusOK}.Result()
		result.Meta = json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`)
		return ended{result}
	}
}

// ended is a call whose process has given its result.
type ended struct{ result *api.Result }

func (ended) Abort(api.Reason)      {}
func (e ended) Result() *api.Result { return e.result }

// asksAlive is a call that asks until it is aborted.
type asksAlive struct {
	ask     func(context.Context, supervisor.Question) supervisor.Answer
	aborted chan struct{}
	once    *sync.Once
}

func (c asksAlive) Abort(api.Reason) { c.once.Do(func() { close(c.aborted) }) }

func (c asksAlive) Result() *api.Result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-c.aborted
		cancel()
	}()
	c.ask(ctx, supervisor.Question{Prompt: "go on?"})
	<-c.aborted
	return supervisor.Verdict{Status: api.StatusCancelled}.Result()
}

// silentClient is one that comes back by the test's word alone.
func silentClient() *mcpsdk.ClientOptions {
	return &mcpsdk.ClientOptions{ElicitationHandler: says("accept", nil).options().ElicitationHandler, MultiRoundTrip: &mcpsdk.MultiRoundTripOptions{Disabled: true}}
}

// A call that its client never makes again keeps no other one waiting while it has no
// process, and goes on all the same if the client comes back.
func TestAnUnansweredCallIsNotInTheWay(t *testing.T) {
	t.Parallel()
	c := connect(t, statelessServer(t, Config{}), kinds[1], silentClient())
	p := params("blocks", arguments{})
	first := invoke(t, c, p)
	if len(first.InputRequests) != 1 {
		t.Fatalf("%+v", first)
	}
	if r := invoke(t, c, params("say", arguments{Text: "meanwhile"})); text(r) != "meanwhile" {
		t.Error(text(r))
	}
	p.RequestState = first.RequestState
	p.InputResponses = mcpsdk.InputResponseMap{"k": &mcpsdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}}
	if r := invoke(t, c, p); r.IsError || !strings.Contains(text(r), "words") {
		t.Error(text(r))
	}
}

// A process that waits for an answer keeps its place, and who is ended behind it learns
// what it has waited for.
func TestBehindAQuestion(t *testing.T) {
	t.Parallel()
	c := connect(t, statelessServer(t, Config{Timeout: ends(4 * time.Second)}), kinds[1], silentClient())
	if first := invoke(t, c, params("fail", arguments{})); len(first.InputRequests) != 1 {
		t.Fatal(text(first))
	}
	r := invoke(t, c, params("say", arguments{}))
	if own := execution(t, r); own.Status != api.StatusCancelled || own.Reason != api.ReasonTimeout {
		t.Errorf("%s/%s", own.Status, own.Reason)
	}
	if said := text(r); strings.Contains(said, "human") || !strings.Contains(said, `behind a call of the tool "fail", which waits for an answer`) {
		t.Errorf("it was told %q", said)
	}
}
