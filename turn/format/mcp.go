package format

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// mcp is the Model Context Protocol: tools/call and its CallToolResult.
type mcp struct{}

func (mcp) Name() string { return "mcp" }

func (p mcp) Calls(response []byte) ([]Call, error) {
	return readCalls(p.Name(), response, p.read)
}

// read takes the requests of method tools/call, of one message or a batch.
func (mcp) read(raw json.RawMessage) ([]Call, error) {
	if raw[0] != '[' {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	messages, err := objects(raw, "messages")
	if err != nil {
		return nil, err
	}
	var calls []Call
	for i, message := range messages {
		if absent(message["jsonrpc"]) {
			return nil, fmt.Errorf("messages[%d] has no jsonrpc: is it of another format?", i)
		}
		if message.text("method") == "tools/call" {
			calls = append(calls, mcpCall(message))
		}
	}
	return calls, nil
}

func mcpCall(message object) Call {
	params, _ := parseObject(message["params"])
	c := Call{ID: mcpID(message["id"]), Tool: params.text("name")}
	c.takeObject(params["arguments"])
	c.takeMeta("_meta", params["_meta"])
	return c
}

// mcpID is a string or a number.
func mcpID(raw json.RawMessage) string {
	if s, ok := textOf(raw); ok {
		return s
	}
	var number json.Number
	if absent(raw) || json.Unmarshal(raw, &number) != nil {
		return ""
	}
	return number.String()
}

type (
	mcpResult struct {
		Content           []any           `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
		IsError           bool            `json:"isError"`
		Meta              mcpMeta         `json:"_meta"`
	}
	mcpMeta struct {
		Execution json.RawMessage `json:"dev.toolhost/execution"`
	}
	// mcpExecution is a part of api.Result, with its names.
	mcpExecution struct {
		Status  api.Status           `json:"status"`
		Code    string               `json:"code"`
		Reason  api.Reason           `json:"reason"`
		Decider string               `json:"decider,omitempty"`
		Details *api.DeadlineDetails `json:"details,omitempty"`
		Timing  api.Timing           `json:"timing"`
		Kill    api.Kill             `json:"kill"`
		Usage   api.Usage            `json:"usage"`
		Retry   api.Retry            `json:"retry"`
	}
	mcpMedia struct {
		Type     string `json:"type"` // image or audio
		Data     []byte `json:"data"`
		MIMEType string `json:"mimeType"`
	}
	mcpResource struct {
		Type     string          `json:"type"`
		Resource mcpBlobContents `json:"resource"`
	}
	mcpBlobContents struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Blob     []byte `json:"blob"`
	}
	mcpLink struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType,omitempty"`
	}
)

func (p mcp) Results(calls []Call, results []*api.Result) ([]byte, error) {
	return encode(mapResults(p.Name(), calls, results, func(_ Call, r *api.Result) mcpResult {
		return mcpResult{blocks(render(r, mcpBlock)), structuredContent(r), !r.OK(), mcpMeta{execution(r)}}
	}))
}

// MCPBlock is a content block of MCP, of type text, image, audio, resource or
// resource_link. Data is set for image, audio and resource.
type MCPBlock struct {
	Type, Text, MIMEType, URI, Name string
	Data                            []byte
}

// MCPContent returns the content blocks of a result as in mcp's Results, for
// programs that encode the message themselves.
func MCPContent(r *api.Result) []MCPBlock {
	var list []MCPBlock
	for _, block := range blocks(render(r, mcpBlock)) {
		switch b := block.(type) {
		case textBlock:
			list = append(list, MCPBlock{Type: b.Type, Text: b.Text})
		case mcpMedia:
			list = append(list, MCPBlock{Type: b.Type, MIMEType: b.MIMEType, Data: b.Data})
		case mcpResource:
			list = append(list, MCPBlock{Type: b.Type, MIMEType: b.Resource.MIMEType, URI: b.Resource.URI, Data: b.Resource.Blob})
		case mcpLink:
			list = append(list, MCPBlock{Type: b.Type, MIMEType: b.MIMEType, URI: b.URI, Name: b.Name})
		}
	}
	return list
}

// execution is a result's evidence, clean.
func execution(r *api.Result) json.RawMessage {
	raw, err := encode(mcpExecution{r.Status, r.Code, r.Reason, r.Decider, r.Details, r.Timing, r.Kill, r.Usage, r.Retry}, nil)
	if err != nil {
		return nil // a bug, and no reason to lose the result
	}
	tidy, _ := cleanJSON(raw)
	return tidy
}

// maxStructuredBytes bounds structuredContent, which is not cut but left out.
const maxStructuredBytes = 1 << 20

// structuredContent is an object in MCP; other values are in the text only. A
// result that is not ok has none: some clients show nothing else where it is.
func structuredContent(r *api.Result) json.RawMessage {
	if !r.OK() {
		return nil
	}
	raw, ok := cleanJSON(r.Structured)
	if !ok || raw[0] != '{' || len(raw) > maxStructuredBytes {
		return nil
	}
	return raw
}

// mcpBlock shows blobs as image, audio or embedded resource (named by its
// hash, since it needs a URI), and links as links.
func mcpBlock(c api.Content) any {
	kind := mimeType(c)
	media, _, _ := strings.Cut(kind, "/")
	switch {
	case c.Type == "blob" && (media == "image" || media == "audio"):
		return mcpMedia{media, data(c), kind}
	case c.Type == "blob":
		uri := clean(c.URI)
		if uri == "" {
			uri = fmt.Sprintf("urn:sha256:%x", sha256.Sum256(c.Data))
		}
		return mcpResource{"resource", mcpBlobContents{uri, kind, data(c)}}
	case c.Type == "resource_link" && c.URI != "":
		name := cmp.Or(c.Name, c.URI)
		return mcpLink{"resource_link", clean(name), clean(c.URI), clean(c.MIMEType)}
	}
	return nil
}

// data is never null in JSON.
func data(c api.Content) []byte { return append([]byte{}, c.Data...) }

type (
	mcpTools struct {
		Tools []mcpTool `json:"tools"`
	}
	mcpTool struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  *mcpAnnotations `json:"annotations,omitempty"`
	}
	mcpAnnotations struct {
		ReadOnly    *bool `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
		Idempotent  *bool `json:"idempotentHint,omitempty"`
		OpenWorld   *bool `json:"openWorldHint,omitempty"`
	}
)

func (p mcp) Tools(tools []Tool) ([]byte, error) {
	list, err := mapTools(p.Name(), mcpAPI, tools, func(t Tool) mcpTool {
		return mcpTool{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, annotations(t)}
	})
	return encode(mcpTools{list}, err)
}

// annotations are nil if the tool says nothing of itself.
func annotations(t Tool) *mcpAnnotations {
	a := mcpAnnotations{t.ReadOnly, t.Destructive, t.Idempotent, t.OpenWorld}
	if a == (mcpAnnotations{}) {
		return nil
	}
	return &a
}
