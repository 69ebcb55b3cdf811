package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// responses is OpenAI's Responses API:
// https://platform.openai.com/docs/api-reference/responses-streaming
type responses struct{}

func (responses) defaultURL() string  { return "https://api.openai.com/v1" }
func (responses) path() string        { return "/responses" }
func (responses) keyVariable() string { return "OPENAI_API_KEY" }

func (responses) authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func (responses) body(model string, tools json.RawMessage, history []json.RawMessage) any {
	return struct {
		Model  string            `json:"model"`
		Stream bool              `json:"stream"`
		Tools  json.RawMessage   `json:"tools,omitempty"`
		Input  []json.RawMessage `json:"input"`
	}{model, true, tools, history}
}

// said is all that came out, thoughts too: the model goes on from them.
func (responses) said(response json.RawMessage) (entries []json.RawMessage, err error) {
	var whole struct{ Output []block }
	if err := json.Unmarshal(response, &whole); err != nil {
		return nil, err
	}
	for _, item := range whole.Output {
		if item.text("type") == "function_call" {
			item["arguments"] = quoted(string(asObject(json.RawMessage(item.text("arguments")))))
		}
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		entries = append(entries, raw)
	}
	return entries, nil
}

func (responses) answers(results json.RawMessage) (items []json.RawMessage, err error) {
	return items, json.Unmarshal(results, &items)
}

func (responses) newReply(text func(string)) reply { return &responsesReply{text: text} }

// responsesReply waits for the event that holds the whole response.
type responsesReply struct {
	text     func(string)
	response json.RawMessage
}

func (r *responsesReply) take(data []byte) (done bool, err error) {
	var e struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Response json.RawMessage `json:"response"`
		// Of an error: the API's own has the message in the event itself.
		Message string   `json:"message"`
		Error   apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("cannot read an event of the stream: %w", err)
	}
	switch e.Type {
	case "error":
		return false, apiError{Message: cmp.Or(e.Message, e.Error.Message)}
	case "response.output_text.delta", "response.refusal.delta":
		r.text(block{"delta": e.Delta}.text("delta"))
	case "response.completed", "response.incomplete", "response.failed":
		r.response = e.Response // Calls tells of a failure, and of what is cut
	}
	return len(r.response) > 0, nil
}

func (r *responsesReply) whole() (json.RawMessage, error) {
	if len(r.response) == 0 {
		return nil, errors.New("the stream ended before the response did")
	}
	return r.response, nil
}

// asObject is what the history keeps of a call's arguments: the object that
// they are, or one that holds what else the model wrote. APIs refuse others, and
// may refuse what is nested too deep.
func asObject(arguments json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	switch {
	case len(arguments) == 0:
		return json.RawMessage(`{}`)
	case json.Unmarshal(arguments, &object) == nil && object != nil && levels(arguments) <= maxLevels:
		return paired(arguments)
	}
	var text string
	if json.Unmarshal(arguments, &text) != nil {
		text = string(arguments)
	}
	return json.RawMessage(`{"INVALID_JSON":` + string(quoted(text)) + `}`)
}

// paired is JSON without half of a surrogate pair, which models write and APIs refuse in
// the next request.
func paired(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) {
		return raw
	}
	var value any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if in.Decode(&value) != nil {
		return raw
	}
	whole, _ := json.Marshal(value) // of what was decoded from JSON
	return whole
}

// maxLevels is how deep arguments are nested at most, as package format has it.
const maxLevels = 256

// levels is how deep JSON is nested.
func levels(raw []byte) (deepest int) {
	in := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := in.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// quoted is s as JSON.
func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // of a string it cannot fail
	return raw
}
