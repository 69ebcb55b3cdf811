package format

import (
	"encoding/json"
	"errors"

	"github.com/toolhost/toolhost/api"
)

// chat is OpenAI's Chat Completions API, and what many other servers speak.
type chat struct{}

func (chat) Name() string { return "openai-chat" }

func (p chat) Calls(response []byte) ([]Call, error) {
	return readCalls(p.Name(), response, p.read)
}

// read takes the tool_calls of the first choice.
func (chat) read(raw json.RawMessage) ([]Call, error) {
	top, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := apiError(top); err != nil {
		return nil, err
	}
	choices, err := objects(top["choices"], "choices")
	if err != nil || len(choices) == 0 {
		return nil, err
	}
	message, err := parseObject(choices[0]["message"])
	if err != nil {
		return nil, errors.New("choices[0] has no message: is it of another format, or a piece of a stream?")
	}
	if absent(message["tool_calls"]) {
		return nil, noLegacyCall(message)
	}
	items, err := objects(message["tool_calls"], "tool_calls")
	if err != nil {
		return nil, err
	}
	reason := choices[0].text("finish_reason")
	return chatCalls(items, reason == "length" || reason == "content_filter"), nil
}

// noLegacyCall refuses a call that has no id to be answered by.
func noLegacyCall(message object) error {
	if absent(message["function_call"]) {
		return nil
	}
	return errors.New("the message has a function_call, of an older form of the API: ask the model with tools in place of functions, so that it answers with tool_calls")
}

// chatCalls reads the items; cut says that the last is not complete.
func chatCalls(items []object, cut bool) []Call {
	var calls []Call
	for i, item := range items {
		c, ok := chatCall(item)
		if !ok {
			continue
		}
		if cut && i == len(items)-1 {
			c.refuse(problemCut)
		}
		calls = append(calls, c)
	}
	return calls
}

// chatCall reads one; some servers leave out the type of a function.
func chatCall(item object) (c Call, ok bool) {
	c.ID = item.text("id")
	switch item.text("type") {
	case "function", "":
		function, _ := parseObject(item["function"])
		c.Tool = function.text("name")
		c.takeText(function["arguments"])
		return c, true
	case "custom":
		custom, _ := parseObject(item["custom"])
		c.Tool, c.Custom = custom.text("name"), true
		c.refuse(problemCustom)
		return c, true
	}
	return Call{}, false
}

type chatMessage struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id"`
	Content    string `json:"content"`
}

func (p chat) Results(calls []Call, results []*api.Result) ([]byte, error) {
	return encode(mapResults(p.Name(), calls, results, func(c Call, r *api.Result) chatMessage {
		return chatMessage{"tool", c.ID, plain(r)}
	}))
}

type (
	chatTool struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
)

func (p chat) Tools(tools []Tool) ([]byte, error) {
	return encode(mapTools(p.Name(), modelAPI, tools, func(t Tool) chatTool {
		return chatTool{"function", chatFunction{t.Name, t.Description, t.InputSchema, false}}
	}))
}
