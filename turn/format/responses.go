package format

import (
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/api"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) Name() string { return "openai" }

func (p responses) Calls(response []byte) ([]Call, error) {
	return readCalls(p.Name(), response, p.read)
}

// read takes the items of type function_call and custom_tool_call. Others are
// the model's words and thoughts, or calls of tools that the API or another
// executor runs.
func (responses) read(raw json.RawMessage) ([]Call, error) {
	top, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := apiError(top); err != nil {
		return nil, err
	}
	status := top.text("status")
	switch status {
	case "failed", "cancelled", "queued", "in_progress":
		return nil, fmt.Errorf("it is not complete: its status is %s", status)
	}
	items, err := objects(top["output"], "output")
	if err != nil {
		return nil, err
	}
	var calls []Call
	for i, item := range items {
		c, ok := responsesCall(item)
		if !ok {
			continue
		}
		last := i == len(items)-1
		if done := item.text("status"); done == "incomplete" || done == "in_progress" ||
			last && status == "incomplete" && done != "completed" {
			c.refuse(problemCut)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func responsesCall(item object) (c Call, ok bool) {
	c = Call{ID: item.text("call_id"), Tool: item.text("name")}
	switch item.text("type") {
	case "function_call":
		c.takeText(item["arguments"])
		return c, true
	case "custom_tool_call":
		c.Custom = true
		c.refuse(problemCustom)
		return c, true
	}
	return Call{}, false
}

type responsesOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

func (p responses) Results(calls []Call, results []*api.Result) ([]byte, error) {
	return encode(mapResults(p.Name(), calls, results, func(c Call, r *api.Result) responsesOutput {
		kind := "function_call_output"
		if c.Custom {
			kind = "custom_tool_call_output"
		}
		return responsesOutput{kind, c.ID, plain(r)}
	}))
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func (p responses) Tools(tools []Tool) ([]byte, error) {
	return encode(mapTools(p.Name(), modelAPI, tools, func(t Tool) responsesTool {
		return responsesTool{"function", t.Name, t.Description, t.InputSchema, false}
	}))
}
