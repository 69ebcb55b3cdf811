package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// chat is OpenAI's Chat Completions API, which many other servers speak:
// https://platform.openai.com/docs/api-reference/chat-streaming
type chat struct{}

func (chat) defaultURL() string  { return responses{}.defaultURL() }
func (chat) path() string        { return "/chat/completions" }
func (chat) keyVariable() string { return responses{}.keyVariable() }

func (chat) authorize(h http.Header, key string) { responses{}.authorize(h, key) }

func (chat) body(model string, tools json.RawMessage, history []json.RawMessage) any {
	return struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Tools    json.RawMessage   `json:"tools,omitempty"`
		Messages []json.RawMessage `json:"messages"`
	}{model, true, tools, history}
}

type (
	chatResponse struct {
		Object  string       `json:"object"`
		Choices []chatChoice `json:"choices"`
	}
	chatChoice struct {
		Index        int         `json:"index"`
		Message      chatMessage `json:"message"`
		FinishReason string      `json:"finish_reason"`
	}
	chatMessage struct {
		Role      string      `json:"role"`
		Content   *string     `json:"content"`
		ToolCalls []*chatCall `json:"tool_calls,omitempty"`
		// Thoughts are DeepSeek's, which wants them back beside calls.
		Thoughts string `json:"reasoning_content,omitempty"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
		// Extra has Gemini's signature of its thoughts, which it wants back.
		Extra json.RawMessage `json:"extra_content,omitempty"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

func (chat) said(response json.RawMessage) ([]json.RawMessage, error) {
	var whole chatResponse
	if err := json.Unmarshal(response, &whole); err != nil {
		return nil, err
	}
	message := whole.Choices[0].Message // whole made it
	for _, c := range message.ToolCalls {
		c.Function.Arguments = string(asObject(json.RawMessage(c.Function.Arguments)))
	}
	raw, err := json.Marshal(message)
	return []json.RawMessage{raw}, err
}

// answers is one message of the role tool for each call.
func (chat) answers(results json.RawMessage) (messages []json.RawMessage, err error) {
	return messages, json.Unmarshal(results, &messages)
}

func (chat) newReply(text func(string)) reply {
	return &chatReply{text: text, byIndex: map[int]*growingCall{}}
}

// chatReply gathers the pieces of a message.
type chatReply struct {
	text         func(string)
	content      strings.Builder
	thoughts     strings.Builder
	calls        []*growingCall
	byIndex      map[int]*growingCall
	finishReason string
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content   string      `json:"content"`
			Refusal   string      `json:"refusal"`
			Thoughts  string      `json:"reasoning_content"`
			ToolCalls []chatPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Error *apiError `json:"error"`
}

// chatPiece is one of a call. The id and the name come with the first.
type chatPiece struct {
	Index *int `json:"index"` // some servers leave it out
	chatCall
}

func (r *chatReply) take(data []byte) (done bool, err error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, fmt.Errorf("cannot read an event of the stream: %w", err)
	}
	if chunk.Error != nil {
		return false, *chunk.Error
	}
	for _, choice := range chunk.Choices { // there is one: no more were asked for
		words := choice.Delta.Content + choice.Delta.Refusal
		r.content.WriteString(words)
		r.thoughts.WriteString(choice.Delta.Thoughts)
		r.text(words)
		for _, piece := range choice.Delta.ToolCalls {
			if err := r.grow(piece); err != nil {
				return false, err
			}
		}
		if choice.FinishReason != "" {
			r.finishReason = choice.FinishReason
		}
	}
	return false, nil
}

// growingCall is a call whose arguments grow.
type growingCall struct {
	chatCall
	arguments strings.Builder
}

func (r *chatReply) grow(piece chatPiece) error {
	c := r.callOf(piece)
	if c == nil {
		return errors.New("the stream goes on with a call that has not begun")
	}
	c.ID = cmp.Or(c.ID, piece.ID)
	c.Type = cmp.Or(c.Type, piece.Type, "function")
	c.Function.Name = cmp.Or(c.Function.Name, piece.Function.Name)
	c.arguments.WriteString(piece.Function.Arguments)
	if len(piece.Extra) > 0 {
		c.Extra = piece.Extra
	}
	return nil
}

// callOf finds the call that a piece is of, and begins it with its first. A
// piece without an index is of the last call, unless it has another id. A call without an id is format.Provider.Calls's to refuse.
func (r *chatReply) callOf(piece chatPiece) *growingCall {
	var c *growingCall
	switch {
	case piece.Index != nil:
		c = r.byIndex[*piece.Index]
	case len(r.calls) > 0:
		if last := r.calls[len(r.calls)-1]; piece.ID == "" || piece.ID == last.ID {
			c = last
		}
	}
	if c != nil || piece.ID == "" && piece.Function.Name == "" {
		return c
	}
	c = &growingCall{}
	r.calls = append(r.calls, c)
	if piece.Index != nil {
		r.byIndex[*piece.Index] = c
	}
	return c
}

func (r *chatReply) whole() (json.RawMessage, error) {
	if r.finishReason == "" {
		return nil, errors.New("the stream ended before the message did")
	}
	message := chatMessage{Role: "assistant", Thoughts: r.thoughts.String()}
	if r.content.Len() > 0 {
		message.Content = new(r.content.String())
	}
	for _, c := range r.calls {
		c.Function.Arguments = c.arguments.String()
		message.ToolCalls = append(message.ToolCalls, &c.chatCall)
	}
	return json.Marshal(chatResponse{"chat.completion", []chatChoice{{0, message, r.finishReason}}})
}
