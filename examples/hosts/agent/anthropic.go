package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropic is the Messages API:
// https://docs.anthropic.com/en/api/messages-streaming
type anthropic struct{}

func (anthropic) defaultURL() string  { return "https://api.anthropic.com" }
func (anthropic) path() string        { return "/v1/messages" }
func (anthropic) keyVariable() string { return "ANTHROPIC_API_KEY" }

func (anthropic) authorize(h http.Header, key string) {
	h.Set("X-Api-Key", key)
}

// anthropicMaxTokens is of one response; the API wants to be told.
const anthropicMaxTokens = 8192

func (anthropic) body(model string, tools json.RawMessage, history []json.RawMessage) any {
	return struct {
		Model     string            `json:"model"`
		MaxTokens int               `json:"max_tokens"`
		Stream    bool              `json:"stream"`
		Tools     json.RawMessage   `json:"tools,omitempty"`
		Messages  []json.RawMessage `json:"messages"`
	}{model, anthropicMaxTokens, true, tools, history}
}

// block is one block of content, by its fields.
type block map[string]json.RawMessage

func (b block) text(field string) (s string) {
	_ = json.Unmarshal(b[field], &s) // any other value counts as empty
	return s
}

// said is the assistant's message. The API refuses it back with a text that is
// blank, or with an input that is not an object.
func (anthropic) said(response json.RawMessage) ([]json.RawMessage, error) {
	var message struct{ Content []block }
	if err := json.Unmarshal(response, &message); err != nil {
		return nil, err
	}
	content := []block{}
	for _, b := range message.Content {
		switch b.text("type") {
		case "text":
			if strings.TrimSpace(b.text("text")) == "" {
				continue
			}
		case "tool_use":
			b["input"] = asObject(b["input"])
		}
		content = append(content, b)
	}
	if len(content) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(map[string]any{"role": "assistant", "content": content})
	return []json.RawMessage{raw}, err
}

// answers is one user message with all results, which follows the assistant's.
func (anthropic) answers(results json.RawMessage) ([]json.RawMessage, error) {
	return []json.RawMessage{results}, nil
}

func (anthropic) newReply(text func(string)) reply { return &anthropicReply{text: text} }

// anthropicReply gathers the blocks of a message.
type anthropicReply struct {
	text       func(string)
	blocks     []growing
	stopReason json.RawMessage
	complete   bool
}

// growing is a block, and by their fields the texts that grow with deltas.
type growing struct {
	block block
	texts map[string]*strings.Builder
}

type anthropicEvent struct {
	Type         string   `json:"type"`
	Index        int      `json:"index"`
	ContentBlock block    `json:"content_block"`
	Delta        block    `json:"delta"`
	Error        apiError `json:"error"`
}

func (r *anthropicReply) take(data []byte) (done bool, err error) {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("cannot read an event of the stream: %w", err)
	}
	switch e.Type {
	case "error":
		return false, e.Error
	case "content_block_start":
		return false, r.begin(e)
	case "content_block_delta":
		return false, r.grow(e)
	case "message_delta":
		if reason := e.Delta["stop_reason"]; len(reason) > 0 {
			r.stopReason = reason
		}
	case "message_stop":
		r.complete = true
	}
	return r.complete, nil // message_start, ping and events to come tell nothing
}

func (r *anthropicReply) begin(e anthropicEvent) error {
	if e.Index != len(r.blocks) || e.ContentBlock == nil {
		return fmt.Errorf("the stream begins block %d after %d blocks", e.Index, len(r.blocks))
	}
	r.blocks = append(r.blocks, growing{e.ContentBlock, map[string]*strings.Builder{}})
	if e.ContentBlock.text("type") == "text" {
		r.text(e.ContentBlock.text("text"))
	}
	return nil
}

// deltas names for each type of delta the field that holds its piece, and the
// field of the block that the pieces make up.
var deltas = map[string]struct{ from, to string }{
	"text_delta":       {"text", "text"},
	"input_json_delta": {"partial_json", "input"},
	"thinking_delta":   {"thinking", "thinking"},
	"signature_delta":  {"signature", "signature"},
}

func (r *anthropicReply) grow(e anthropicEvent) error {
	if e.Index < 0 || e.Index >= len(r.blocks) {
		return fmt.Errorf("the stream goes on with block %d, which has not begun", e.Index)
	}
	kind, known := deltas[e.Delta.text("type")]
	if !known {
		return nil
	}
	g, piece := r.blocks[e.Index], e.Delta.text(kind.from)
	if g.texts[kind.to] == nil {
		g.texts[kind.to] = &strings.Builder{}
		g.texts[kind.to].WriteString(g.block.text(kind.to)) // what it began with
	}
	g.texts[kind.to].WriteString(piece)
	if kind.to == "text" {
		r.text(piece)
	}
	return nil
}

func (r *anthropicReply) whole() (json.RawMessage, error) {
	if !r.complete {
		return nil, errors.New("the stream ended before the message did")
	}
	content := []block{}
	for _, g := range r.blocks {
		for field, text := range g.texts {
			if field == "input" {
				g.setInput(text.String())
				continue
			}
			g.block[field] = quoted(text.String())
		}
		content = append(content, g.block)
	}
	return json.Marshal(map[string]any{
		"type": "message", "role": "assistant", "content": content, "stop_reason": r.stopReason,
	})
}

// maxInputLevels leaves room for what is around an input: encoding/json takes
// 10,000 levels in all. Package format takes fewer, and says so to the model.
const maxInputLevels = 5000

// setInput takes what the model wrote as a call's input. It may be cut, or no
// JSON at all: then it stays a text, which format.Provider.Calls refuses for
// this one call.
func (g growing) setInput(text string) {
	switch {
	case strings.TrimSpace(text) == "": // it stays as it began: {}
	case json.Valid([]byte(text)) && levels([]byte(text)) <= maxInputLevels:
		g.block["input"] = json.RawMessage(text)
	default:
		g.block["input"] = quoted(text)
	}
}
