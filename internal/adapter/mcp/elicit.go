package mcp

import (
	"context"
	"encoding/json"
	"errors"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugin"
)

// Bounds of what a human is asked.
const (
	maxPromptBytes       = 16 << 10
	maxQuestionSchema    = 64 << 10
	declined, dismissed  = "decline", "cancel" // the human said no; nobody said anything
	modeURL              = "url"
	reasonUser, accepted = "user", "accept"
)

// elicit puts a question of the server to a human. URL mode is declined: the
// user may have no browser, and a sandboxed server is to get no secrets past the
// host.
func (w *wire) elicit(ctx context.Context, p *mcpsdk.ElicitParams) *mcpsdk.ElicitResult {
	c := w.asker(ctx)
	switch {
	case p.Mode == modeURL:
		w.note("wanted a human to open a URL, which was declined")
		return &mcpsdk.ElicitResult{Action: declined}
	case c == nil:
		w.note("asked a human something while not exactly one call was running, so that nobody knows for which")
		return &mcpsdk.ElicitResult{Action: dismissed}
	}
	question := plugin.Question{Prompt: cut(p.Message, maxPromptBytes)}
	form := p.RequestedSchema != nil
	if form {
		var err error
		if question.Schema, err = json.Marshal(p.RequestedSchema); err != nil || len(question.Schema) > maxQuestionSchema {
			w.note("asked a human to fill in a form that is too large")
			return &mcpsdk.ElicitResult{Action: dismissed}
		}
	}
	answer, err := c.ask(ctx, question)
	if err != nil {
		return &mcpsdk.ElicitResult{Action: action(err)}
	}
	return w.answerOf(answer, form)
}

// asker is the call that a question is about: the one under whose context it
// comes (the newest protocol), or else the only one that runs.
func (w *wire) asker(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	if running := w.running(); len(running) == 1 {
		return running[0]
	}
	return nil
}

// ask waits for an answer until the server takes the question back or the call
// ends. Questions of one call come one after the other.
func (c *call) ask(ctx context.Context, q plugin.Question) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.out.Ask(ctx, q)
}

func action(err error) string {
	if denied, ok := errors.AsType[*plugin.DeniedError](err); ok && denied.Reason == reasonUser {
		return declined
	}
	return dismissed
}

// answerOf makes a form's values, or a plain yes or no, the server's answer.
func (w *wire) answerOf(answer json.RawMessage, form bool) *mcpsdk.ElicitResult {
	if !form {
		if string(answer) == "true" {
			return &mcpsdk.ElicitResult{Action: accepted}
		}
		return &mcpsdk.ElicitResult{Action: declined}
	}
	var content map[string]any
	if err := json.Unmarshal(answer, &content); err != nil || content == nil {
		w.note("got no answer: the human's is not a set of values")
		return &mcpsdk.ElicitResult{Action: dismissed}
	}
	return &mcpsdk.ElicitResult{Action: accepted, Content: content}
}
