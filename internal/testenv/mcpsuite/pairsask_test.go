//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and clients may still use them

package mcpsuite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// every kind of field that a form may have.
const everyField = `{"type":"object","properties":{
	"word":{"type":"string","title":"A word","description":"d","minLength":1,"maxLength":20,"default":"w"},
	"mail":{"type":"string","format":"email"},"site":{"type":"string","format":"uri"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
	"number":{"type":"number","minimum":0,"maximum":10,"default":1.5},"count":{"type":"integer","default":7},"yes":{"type":"boolean","default":true},
	"one":{"type":"string","enum":["a","b"],"default":"b"},
	"titled":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#00f","title":"Blue"}]},
	"older":{"type":"string","enum":["x","y"],"enumNames":["Ex","Why"]},
	"some":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["p","q","r"]},"default":["p"]},
	"more":{"type":"array","items":{"anyOf":[{"const":"1","title":"One"},{"const":"2","title":"Two"}]}}
},"required":["word"]}`

var everyValue = map[string]any{
	"word": "w", "mail": "a@example.com", "site": "https://example.com", "day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "number": 2.5, "count": 3.0, "yes": false,
	"one": "a", "titled": "#00f", "older": "y", "some": []any{"p", "q"}, "more": []any{"2"},
}

// requested is what a server asks its client for.
func requested(method, params string) map[string]any {
	return map[string]any{"request": []any{method, json.RawMessage(params)}}
}

// asksAll: what a server asks of its client comes as it was asked, and so does the
// answer.
func (h *hears) asksAll() {
	h.t.Helper()
	form := func(schema string) map[string]any {
		return requested("elicitation/create", `{"mode":"form","message":"Fill in","requestedSchema":`+schema+`}`)
	}
	const url = `{"mode":"url","message":"Sign in","url":"https://example.com/sign?in=1&x=%20","elicitationId":"e-1"}`
	for _, one := range []struct {
		name   string
		given  map[string]any
		answer mcp.ElicitResult
		want   string
	}{
		{"all fields", form(everyField), mcp.ElicitResult{Action: "accept", Content: everyValue}, shape(h.t, map[string]any{"action": "accept", "content": everyValue})},
		{"a no", form(everyField), mcp.ElicitResult{Action: "decline"}, `{"action":"decline"}`},
		{"no answer", form(everyField), mcp.ElicitResult{Action: "cancel"}, `{"action":"cancel"}`},
		{"an address", requested("elicitation/create", url), mcp.ElicitResult{Action: "accept"}, `{"action":"accept"}`},
		{"an address that is not opened", requested("elicitation/create", url), mcp.ElicitResult{Action: "decline"}, `{"action":"decline"}`},
	} {
		h.setAnswer(one.answer)
		said := h.callWith("fresh__ask", one.given)
		if got := decoded(h.t, said); shape(h.t, got) != shape(h.t, decoded(h.t, one.want)) {
			h.t.Errorf("%s: the server gets %s, want %s", one.name, said, one.want)
		}
		asked := h.lastAsked()
		if asked.URL != "" {
			if !strings.HasPrefix(asked.Message, `MCP server "fresh"`) || !strings.HasSuffix(asked.Message, ": Sign in") || asked.URL != "https://example.com/sign?in=1&x=%20" {
				h.t.Errorf("%s: the client is asked %+v", one.name, asked)
			}
			continue
		}
		if got := shape(h.t, asked.RequestedSchema); !strings.HasSuffix(strings.TrimSpace(asked.Message), "Fill in") || got != shape(h.t, decoded(h.t, everyField)) {
			h.t.Errorf("%s: the client is asked %s, and %s", one.name, asked.Message, got)
		}
	}
	sampling := requested("sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"capital of France?"}}],"maxTokens":20,"systemPrompt":"s","temperature":0.5,"modelPreferences":{"hints":[{"name":"m"}]}}`)
	if said := h.callWith("fresh__ask", sampling); !strings.Contains(said, `"text": "Paris"`) || !strings.Contains(said, `"model": "m"`) {
		h.t.Errorf("the server gets %s from the client's model", said)
	}
	if p := h.lastSampled(); p.SystemPrompt != "s" || p.Temperature != 0.5 || p.MaxTokens != 20 || len(p.ModelPreferences.Hints) != 1 {
		h.t.Errorf("the client's model is asked %s", shape(h.t, p))
	}
}

func (h *hears) setAnswer(a mcp.ElicitResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.asked = a, nil
}

func (h *hears) lastAsked() *mcp.ElicitParams {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == nil {
		h.t.Fatal("the client is not asked")
	}
	return h.asked
}

func (h *hears) lastSampled() *mcp.CreateMessageParams {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sampled == nil {
		h.t.Fatal("the client's model is not asked")
	}
	return h.sampled
}

// answers are what the client can be asked for.
func (h *hears) answers(o *mcp.ClientOptions) {
	o.Capabilities = &mcp.ClientCapabilities{
		RootsV2: &mcp.RootCapabilities{ListChanged: true}, Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
	}
	o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked = r.Params
		own := h.answer
		return &own, nil
	}
	o.CreateMessageHandler = func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sampled = r.Params
		return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "Paris"}}, nil
	}
	o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		h.hear(fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message))
	}
}

func (h *hears) callWith(tool string, arguments map[string]any) string {
	h.t.Helper()
	result, err := h.session.CallTool(wait.Context(h.t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	return textOf(result)
}

func textOf(r *mcp.CallToolResult) (all string) {
	for _, c := range r.Content {
		if one, ok := c.(*mcp.TextContent); ok {
			all += one.Text
		}
	}
	return all
}

// progresses: the caller hears each step; a cancellation reaches the server and ends the
// caller's wait.
func (h *hears) progresses() {
	h.t.Helper()
	steps := &mcp.CallToolParams{Name: "kept__progress", Arguments: map[string]any{}}
	steps.SetProgressToken("steps")
	if _, err := h.session.CallTool(wait.Context(h.t), steps); err != nil {
		h.t.Fatal(err)
	}
	for i := range 3 {
		h.await(fmt.Sprintf("steps %d of 3: step %d", i+1, i+1), 1)
	}
	before := h.callWith("kept__cancelled", map[string]any{})
	ctx, cancel := context.WithCancel(wait.Context(h.t))
	slow := &mcp.CallToolParams{Name: "kept__slow", Arguments: map[string]any{}}
	slow.SetProgressToken("slow")
	over := make(chan error, 1)
	go func() {
		_, err := h.session.CallTool(ctx, slow)
		over <- err
	}()
	h.await("slow 1: began", 1)
	cancel()
	if err := <-over; err == nil {
		h.t.Error("a cancelled call has a result")
	}
	// A call that does not end is killed with its process: then another one counts from 0.
	wait.Until(h.t, "the server hears of it, or is gone", func() bool {
		now := h.callWith("kept__cancelled", map[string]any{})
		return now != before || now == "0"
	})
}

// offers: what a server has beside tools is listed and used.
func (h *hears) offers() {
	h.t.Helper()
	ctx := wait.Context(h.t)
	prompts, err := h.session.ListPrompts(ctx, nil)
	if err != nil || !slices.ContainsFunc(prompts.Prompts, func(p *mcp.Prompt) bool { return p.Name == "fresh__p" && len(p.Arguments) == 1 }) {
		h.t.Errorf("%v, prompts %s", err, shape(h.t, prompts))
	}
	prompt, err := h.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "fresh__p", Arguments: map[string]string{"who": "Ada"}})
	if err != nil || len(prompt.Messages) != 1 || prompt.Messages[0].Content.(*mcp.TextContent).Text != "p for Ada" {
		h.t.Errorf("%v, prompt %s", err, shape(h.t, prompt))
	}
	templates, err := h.session.ListResourceTemplates(ctx, nil)
	if err != nil || !slices.ContainsFunc(templates.ResourceTemplates, func(r *mcp.ResourceTemplate) bool { return r.URITemplate == "toolhost:fresh/asks://of/{x}" }) {
		h.t.Errorf("%v, templates %s", err, shape(h.t, templates))
	}
	for _, uri := range []string{"asks://ticks", "toolhost:fresh/asks://ticks", "asks://of/1", "toolhost:fresh/asks://of/1"} {
		read, err := h.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].URI != uri || !strings.HasPrefix(read.Contents[0].Text, "ticked ") {
			h.t.Errorf("%s: %v, %s", uri, err, shape(h.t, read))
		}
	}
	for _, one := range []struct {
		ref  mcp.CompleteReference
		want string
	}{
		{mcp.CompleteReference{Type: "ref/prompt", Name: "fresh__p"}, "p Abefore"},
		{mcp.CompleteReference{Type: "ref/resource", URI: "toolhost:fresh/asks://of/{x}"}, "asks://of/{x} Abefore"},
	} {
		completed, err := h.session.Complete(ctx, &mcp.CompleteParams{
			Ref: &one.ref, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "A"}, Context: &mcp.CompleteContext{Arguments: map[string]string{"other": "before"}},
		})
		if err != nil || !slices.Equal(completed.Completion.Values, []string{one.want}) {
			h.t.Errorf("%+v: %v, %s", one.ref, err, shape(h.t, completed))
		}
	}
}

// hasGrown: what the kept process has added is listed, and can be used.
func (h *hears) hasGrown() {
	h.t.Helper()
	ctx := wait.Context(h.t)
	wait.Until(h.t, "what the kept process has added is listed", func() bool {
		tools, err := h.session.ListTools(ctx, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		prompts, err := h.session.ListPrompts(ctx, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		resources, err := h.session.ListResources(ctx, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		return slices.ContainsFunc(tools.Tools, func(one *mcp.Tool) bool { return one.Name == "kept__tools1" }) &&
			slices.ContainsFunc(prompts.Prompts, func(one *mcp.Prompt) bool { return one.Name == "kept__prompts1" }) &&
			slices.ContainsFunc(resources.Resources, func(one *mcp.Resource) bool { return one.URI == "asks://resources1" })
	})
	if said := h.callWith("kept__tools1", map[string]any{"text": "grown"}); said != "grown" {
		h.t.Errorf("the new tool says %q", said)
	}
}
