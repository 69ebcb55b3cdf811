package format

import (
	"encoding/json"

	"github.com/toolhost/toolhost/api"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) Name() string { return "anthropic" }

func (p anthropic) Calls(response []byte) ([]Call, error) {
	return readCalls(p.Name(), response, p.read)
}

// read takes the blocks of type tool_use; server_tool_use and mcp_tool_use
// were executed by the API.
func (anthropic) read(raw json.RawMessage) ([]Call, error) {
	top, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := apiError(top); err != nil {
		return nil, err
	}
	blocks, err := objects(top["content"], "content")
	if err != nil {
		return nil, err
	}
	var calls []Call
	for i, block := range blocks {
		if block.text("type") != "tool_use" {
			continue
		}
		c := Call{ID: block.text("id"), Tool: block.text("name")}
		c.takeObject(block["input"])
		if last := i == len(blocks)-1; last && cutStops[top.text("stop_reason")] {
			c.refuse(problemCut)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// cutStops are the reasons to stop that leave the last block unfinished.
var cutStops = map[string]bool{"max_tokens": true, "model_context_window_exceeded": true, "refusal": true}

type (
	anthropicMessage struct {
		Role    string                `json:"role"`
		Content []anthropicToolResult `json:"content"`
	}
	anthropicToolResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   []any  `json:"content"`
		IsError   bool   `json:"is_error,omitempty"`
	}
	anthropicImage struct {
		Type   string               `json:"type"`
		Source anthropicImageSource `json:"source"`
	}
	anthropicImageSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

func (p anthropic) Results(calls []Call, results []*api.Result) ([]byte, error) {
	list, err := mapResults(p.Name(), calls, results, func(c Call, r *api.Result) anthropicToolResult {
		show := anthropicBlock
		if !r.OK() { // the API takes nothing but text beside is_error
			show = func(api.Content) any { return nil }
		}
		return anthropicToolResult{"tool_result", c.ID, blocks(render(r, show)), !r.OK()}
	})
	return encode(anthropicMessage{"user", list}, err)
}

// maxImagePixels is the width, and the height, that the API takes.
const maxImagePixels = 8000

// anthropicBlock shows images of the types and sizes that the API takes. It goes by what
// the data is: the API refuses the whole request, and each one after it, where type and
// data differ, or an image is too large or broken.
func anthropicBlock(c api.Content) any {
	kind := imageType(c.Data)
	if c.Type != "blob" || kind == "" {
		return nil
	}
	if width, height := imageSize(c.Data); min(width, height) < 1 || max(width, height) > maxImagePixels {
		return nil
	}
	return anthropicImage{Type: "image", Source: anthropicImageSource{Type: "base64", MediaType: kind, Data: c.Data}}
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func (p anthropic) Tools(tools []Tool) ([]byte, error) {
	return encode(mapTools(p.Name(), modelAPI, tools, func(t Tool) anthropicTool {
		return anthropicTool{t.Name, t.Description, t.InputSchema}
	}))
}
