package format

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/lazy"
)

// gemini is Google's generateContent, of the Gemini API and of Vertex AI. Its
// keys are read as the API writes them and as Google's Python client dumps
// them: functionCall and function_call.
type gemini struct{}

func (gemini) Name() string { return "gemini" }

func (p gemini) Calls(response []byte) ([]Call, error) {
	return readCalls(p.Name(), response, p.read)
}

// read takes the parts functionCall of the first candidate. Others are the
// model's words and thoughts, or what the API has run.
func (gemini) read(raw json.RawMessage) ([]Call, error) {
	top, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(apiError(top), blocked(top)); err != nil {
		return nil, err
	}
	candidates, err := objects(top["candidates"], "candidates")
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	reason := textOfEither(candidates[0], "finishReason", "finish_reason")
	content, _ := parseObject(candidates[0]["content"])
	if absent(content["parts"]) {
		return nil, unmade(reason)
	}
	parts, err := objects(content["parts"], "parts")
	if err != nil {
		return nil, err
	}
	calls := geminiCalls(parts, !complete[reason])
	if len(calls) == 0 {
		return nil, unmade(reason)
	}
	return calls, nil
}

// blocked is the reason why there is no candidate.
func blocked(top object) error {
	feedback, _ := parseObject(either(top, "promptFeedback", "prompt_feedback"))
	if reason := textOfEither(feedback, "blockReason", "block_reason"); reason != "" && absent(top["candidates"]) {
		return fmt.Errorf("the API has blocked the prompt: %s", shorten(reason))
	}
	return nil
}

// unmade tells a call that the model could not write from no call.
func unmade(reason string) error {
	if reason == "MALFORMED_FUNCTION_CALL" {
		return errors.New("the model's call cannot be read (MALFORMED_FUNCTION_CALL): ask the model again")
	}
	return nil
}

// complete are the reasons to stop that leave nothing unfinished.
var complete = map[string]bool{"": true, "FINISH_REASON_UNSPECIFIED": true, "STOP": true, "TOO_MANY_TOOL_CALLS": true, "UNEXPECTED_TOOL_CALL": true}

// geminiCalls reads the calls among parts; cut says that the last part is not
// complete. Models before Gemini 3 give calls no ids.
func geminiCalls(parts []object, cut bool) []Call {
	var calls []Call
	for i, part := range parts {
		raw := either(part, "functionCall", "function_call")
		if absent(raw) {
			continue
		}
		function, _ := parseObject(raw)
		c := Call{ID: function.text("id"), Tool: function.text("name")}
		c.NoID = c.ID == ""
		c.takeObject(function["args"])
		if more := string(either(function, "willContinue", "will_continue")) == "true"; more || cut && i == len(parts)-1 {
			c.refuse(problemCut)
		}
		calls = append(calls, c)
	}
	nameCalls(calls)
	return calls
}

// either is what is under one of two spellings of a key.
func either(o object, key, other string) json.RawMessage {
	if absent(o[key]) {
		return o[other]
	}
	return o[key]
}

func textOfEither(o object, key, other string) string { return cmp.Or(o.text(key), o.text(other)) }

type (
	geminiContent struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		FunctionResponse geminiResponse `json:"functionResponse"`
	}
	geminiResponse struct {
		ID       string         `json:"id,omitempty"`
		Name     string         `json:"name"`
		Response geminiToolText `json:"response"`
	}
	// geminiToolText has one of the two.
	geminiToolText struct {
		Output string `json:"output,omitempty"`
		Error  string `json:"error,omitempty"`
	}
)

func (p gemini) Results(calls []Call, results []*api.Result) ([]byte, error) {
	parts, err := mapResults(p.Name(), calls, results, func(c Call, r *api.Result) geminiPart {
		response := geminiResponse{Name: c.Tool}
		if !c.NoID {
			response.ID = c.ID
		}
		if r.OK() {
			response.Response.Output = plain(r)
		} else {
			response.Response.Error = plain(r)
		}
		return geminiPart{response}
	})
	return encode(geminiContent{"user", parts}, err)
}

// geminiAPI has a rule of its own for names, and takes JSON Schema.
var geminiAPI = dialect{lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`), "1 to 64 letters, digits, _ and -, beginning with a letter or _", true}

type (
	geminiTools struct {
		FunctionDeclarations []geminiTool `json:"functionDeclarations"`
	}
	geminiTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"` // required
		Parameters  json.RawMessage `json:"parametersJsonSchema"`
	}
)

func (p gemini) Tools(tools []Tool) ([]byte, error) {
	list, err := mapTools(p.Name(), geminiAPI, tools, func(t Tool) geminiTool {
		return geminiTool{t.Name, cmp.Or(t.Description, t.Name), t.InputSchema}
	})
	groups := []geminiTools{}
	if len(list) > 0 { // the API refuses an empty one
		groups = append(groups, geminiTools{list})
	}
	return encode(groups, err)
}
