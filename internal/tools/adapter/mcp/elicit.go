package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/plugin/schema"
)

// Bounds of what a human is asked.
const (
	maxPromptBytes       = 16 << 10
	maxQuestionSchema    = 16 << 10            // as a turn has it
	declined, dismissed  = "decline", "cancel" // the human said no; nobody said anything
	modeURL              = "url"
	reasonUser, accepted = "user", "accept"
)

// elicitation is what a server asks a human.
type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

// answered is a human's answer as the server gets it.
type answered struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
	Meta    json.RawMessage `json:"_meta,omitempty"`
}

// elicit puts a question of the server to a human. A URL is shown by the host, to
// who can open it.
func (s *session) elicit(ctx context.Context, raw json.RawMessage) (any, error) {
	w := s.wire
	var p elicitation
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	c := w.asker()
	if c == nil {
		w.note("asked a human something while not exactly one call was running, so that nobody knows for which")
		return answered{Action: dismissed}, nil
	}
	if p.Mode == modeURL {
		given, err := s.askAll(ctx, c, plugin.Question{Requests: map[string]plugin.ClientRequest{"": {Method: methodElicit, Params: raw}}})
		return given[""], err
	}
	question := plugin.Question{Prompt: text.Begin(p.Message, maxPromptBytes)}
	wants, err := p.schema()
	switch {
	case err != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case len(p.RequestedSchema) > maxQuestionSchema:
		w.note("asked a human to fill in a form that is too large")
		return answered{Action: dismissed}, nil
	case wants != nil:
		question.Schema = p.RequestedSchema
	}
	answer, meta, err := c.ask(ctx, question)
	if err != nil {
		return answered{Action: action(err), Meta: meta}, nil
	}
	given, err := w.answerOf(answer, wants)
	given.Meta = meta
	return given, err
}

// schema is nil for a question of yes or no.
func (p elicitation) schema() (*schema.Schema, error) {
	if len(p.RequestedSchema) == 0 || string(p.RequestedSchema) == "null" {
		return nil, nil
	}
	var shape struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(p.RequestedSchema, &shape); err != nil || shape.Type != "object" {
		return nil, errors.New("the requested schema must be of type 'object'")
	}
	if len(p.RequestedSchema) > maxQuestionSchema {
		return nil, nil // it is refused for that
	}
	wants, err := schema.ParseObject(p.RequestedSchema)
	if err != nil {
		return nil, fmt.Errorf("the requested schema cannot be used: %w", err)
	}
	return wants, nil
}

// asker is the call that a question is about: the only one that runs.
func (w *wire) asker() *call {
	if running := w.running(); len(running) == 1 {
		return running[0]
	}
	return nil
}

// ask waits for an answer until the server takes the question back or the call
// ends. Questions of one call come one after the other.
func (c *call) ask(ctx context.Context, q plugin.Question) (value, meta json.RawMessage, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	return c.out.AskBeside(ctx, q)
}

func action(err error) string {
	if denied, ok := errors.AsType[*plugin.DeniedError](err); ok && denied.Reason == reasonUser {
		return declined
	}
	return dismissed
}

// answerOf makes a form's values, or a plain yes or no, the server's answer.
func (w *wire) answerOf(answer json.RawMessage, wants *schema.Schema) (answered, error) {
	if wants == nil {
		if string(answer) == "true" {
			return answered{Action: accepted}, nil
		}
		return answered{Action: declined}, nil
	}
	var content map[string]any
	if err := json.Unmarshal(answer, &content); err != nil || content == nil {
		w.note("got no answer: the human's is not a set of values")
		return answered{Action: dismissed}, nil
	}
	if err := wants.Validate(content); err != nil {
		return answered{}, fmt.Errorf("the answer does not match requested schema: %w", err)
	}
	return answered{Action: accepted, Content: answer}, nil
}
