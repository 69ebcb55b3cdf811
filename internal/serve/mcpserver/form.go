package mcpserver

import (
	"encoding/json"
	"slices"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
)

// form is how a question looks to a client: MCP has forms of one object, whose
// properties are not objects.
type form struct {
	schema json.RawMessage
	// wraps is the property that holds the value; empty if the object is it.
	wraps string
	// text: the property holds the value as JSON, to be typed.
	text bool
	// plain: to accept is yes, to decline no. always is what a yes can be for beside
	// one call (api.ForTurn, ...); empty for nothing.
	plain  bool
	always string
}

const valueName = "value"

var (
	approvalForm = longerForm(api.ForSession, "Allow this tool for the rest of the session")
	// A connection to a name: a client without sessions has a turn for each call.
	reachForm     = longerForm(api.ForSession, "Allow this tool to connect to it for the rest of the session")
	reachCallForm = longerForm(api.ForTurn, "Allow this call to connect to it again")
	confirmForm   = form{plain: true, schema: json.RawMessage(`{"type":"object","properties":{}}`)}
	typedForm     = form{
		wraps: valueName, text: true,
		schema: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string","title":"The answer, as JSON"}},"required":["value"]}`),
	}
)

// longerForm is of an approval that can be for more than it is asked for.
func longerForm(lasts, title string) form {
	schema := `{"type":"object","properties":{"always":{"type":"boolean","title":"` + title + `","default":false}}}`
	return form{plain: true, always: lasts, schema: json.RawMessage(schema)}
}

// severalSince is the first version whose forms have choices of several.
const severalSince = "2025-11-25"

// formOf chooses the form of a question to a client of a version; keeps says whether an
// approval can be for the session.
func formOf(i api.Interaction, keeps bool, version string) form {
	var shape struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	switch {
	case i.Reach() != "" && keeps:
		return reachForm
	case i.Reach() != "":
		return reachCallForm
	case i.Kind == api.KindApproval && !i.Host && len(i.Schema) == 0 && keeps:
		return approvalForm
	case len(i.Schema) == 0:
		return confirmForm
	case json.Unmarshal(i.Schema, &shape) != nil:
		return typedForm
	case shape.Type == "object":
		for _, property := range shape.Properties {
			if !primitive(property, version) {
				return typedForm
			}
		}
		return form{schema: i.Schema}
	case primitive(i.Schema, version):
		whole, err := json.Marshal(map[string]any{
			"type": "object", "properties": map[string]any{valueName: i.Schema}, "required": []string{valueName},
		})
		if err == nil {
			return form{schema: whole, wraps: valueName}
		}
	}
	return typedForm
}

// primitive says whether a form of a version may have such a property.
func primitive(schema json.RawMessage, version string) bool {
	var shape struct {
		Type string          `json:"type"`
		Ref  json.RawMessage `json:"$ref"`
		// Items are those of a choice of several.
		Items struct {
			Enum  []json.RawMessage `json:"enum"`
			AnyOf []json.RawMessage `json:"anyOf"`
		} `json:"items"`
	}
	if json.Unmarshal(schema, &shape) != nil || shape.Ref != nil {
		return false
	}
	if shape.Type == "array" { // a choice of several
		return version >= severalSince && (len(shape.Items.Enum) > 0 || len(shape.Items.AnyOf) > 0)
	}
	return slices.Contains([]string{"string", "number", "integer", "boolean"}, shape.Type)
}

func (f form) params(i api.Interaction) *mcpsdk.ElicitParams {
	return &mcpsdk.ElicitParams{Mode: "form", Message: message(i), RequestedSchema: f.schema}
}

// answer reads what came back.
func (f form) answer(r *mcpsdk.ElicitResult) api.Answer {
	switch r.Action {
	case "accept":
	case "decline":
		return api.Answer{}
	case "cancel":
		return api.Answer{Unanswered: api.OutcomeDismissed}
	default:
		return api.Answer{Unanswered: api.OutcomeFailed}
	}
	if f.plain {
		always, _ := r.Content["always"].(bool)
		if !always || f.always == "" {
			return api.Answer{Approve: true}
		}
		return api.Answer{Approve: true, Always: true, For: f.always}
	}
	value := f.value(r)
	if text, ok := value.(string); f.text {
		if !ok || !json.Valid([]byte(text)) {
			return api.Answer{Unanswered: api.OutcomeFailed}
		}
		return api.Answer{Approve: true, Value: json.RawMessage(text)}
	}
	raw, err := json.Marshal(value)
	if err != nil || value == nil {
		return api.Answer{Unanswered: api.OutcomeFailed}
	}
	return api.Answer{Approve: true, Value: raw}
}

// value is what the form asked for, as it was written where that is known.
func (f form) value(r *mcpsdk.ElicitResult) any {
	var value any = r.Content
	if r.Content == nil {
		value = map[string]any{}
	}
	content := object.Of(writtenIn(r.Meta))["content"]
	if r.Content != nil && len(content) > 0 && !f.text {
		value = content
	}
	if f.wraps != "" {
		value = r.Content[f.wraps]
		if written := object.Of(content)[f.wraps]; value != nil && len(written) > 0 && !f.text {
			value = written
		}
	}
	return value
}
