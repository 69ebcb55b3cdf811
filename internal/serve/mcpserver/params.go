package mcpserver

//lint:file-ignore SA1019 sampling, roots and logging leave MCP with version 2026-07-28: they are passed on for those that have them

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/serve/mcpserver/internal/object"
	"github.com/toolhost/toolhost/internal/tools/mcpcall"
)

// shapes are the fields of params that the SDK reads into types of its own, and what finds
// that it cannot: its errors name types of Go. A field of one name is of one type in all
// methods, but for arguments.
var shapes = []struct {
	field string
	fits  func(path string, raw json.RawMessage) error
}{
	{"_meta", metaFits},
	{"name", fits[string]},
	{"uri", fits[string]},
	{"cursor", fits[string]},
	{"requestState", fits[string]},
	{"inputResponses", answersFit},
	{"protocolVersion", fits[string]},
	{"capabilities", fits[mcpsdk.ClientCapabilities]},
	{"clientInfo", fits[mcpsdk.Implementation]},
	{"ref", referenceFits},
	{"argument", fits[mcpsdk.CompleteParamsArgument]},
	{"context", fits[mcpsdk.CompleteContext]},
	{"notifications", fits[mcpsdk.NotificationSubscriptions]},
}

// unfitParams is why a request cannot have its params, whose fields are these if it is an
// object. The SDK knows of unknown methods, and drops notifications that it cannot read.
func unfitParams(r *jsonrpc.Request, raw json.RawMessage, params object.Fields) error {
	needed, known := methods[r.Method]
	switch {
	case needed && !given(raw):
		return fmt.Errorf("%s has no params: send them", r.Method)
	case !known || !r.IsCall() || !given(raw):
		return nil
	case params == nil:
		return mustBe("params", "an object", raw)
	}
	return unfitFields(r.Method, params)
}

func unfitFields(method string, params object.Fields) error {
	for _, one := range shapes {
		if value, there := params[one.field]; there {
			if err := one.fits("params."+one.field, value); err != nil {
				return err
			}
		}
	}
	switch {
	case method == "tools/call":
		return fits[map[string]json.RawMessage]("params.arguments", params["arguments"])
	case namesResource(method, params) && !given(params["uri"]):
		return mustBe("params.uri", "a string", nil)
	case method == "prompts/get":
		return textsFit("params.arguments", params["arguments"])
	case method == "logging/setLevel" && !stateless(params): // which has no such method
		return levelFits("params.level", params["level"])
	}
	return nil
}

// namesResource says whether a request needs a URI: since 2026-07-28 none subscribes.
func namesResource(method string, params object.Fields) bool {
	return method == "resources/read" || strings.HasSuffix(method, "subscribe") && !stateless(params)
}

// fits says why a value cannot be read as a T. One that is missing or null can.
func fits[T any](path string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, new(T)); err != nil {
		return worded(path, "as the protocol has it", raw, err)
	}
	return nil
}

// textsFit is fits for an object of texts: an error of package json does not name the one.
func textsFit(path string, raw json.RawMessage) error {
	if err := fits[map[string]json.RawMessage](path, raw); err != nil {
		return err
	}
	texts := object.Of(raw)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if err := fits[string](path+"."+cut(key, maxShownBytes), texts[key]); err != nil {
			return err
		}
	}
	return nil
}

// worded is why a value cannot be read, in words of JSON; what it must be is said where
// package json does not know that.
func worded(path, what string, raw json.RawMessage, err error) error {
	e, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		return mustBe(path, what, raw)
	}
	for _, key := range strings.Split(e.Field, ".") {
		if below, there := object.Of(raw)[key]; there {
			path, raw = path+"."+key, below
		}
	}
	if !strings.HasPrefix(e.Value, kindOf(raw)) {
		path = "each element of " + path
	}
	return mustBe(path, kindWords[e.Type.Kind()], raw)
}

var kindWords = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
	reflect.Slice: "an array", reflect.Map: "an object", reflect.Struct: "an object", reflect.Pointer: "an object",
}

// kindOf is a value's kind, as package json names it.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

func mustBe(path, what string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return fmt.Errorf("%s is missing: it must be %s", path, what)
	}
	return fmt.Errorf("%s must be %s, not %s", path, what, cut(string(raw), maxShownBytes))
}

func metaFits(path string, raw json.RawMessage) error {
	if err := fits[map[string]json.RawMessage](path, raw); err != nil {
		return err
	}
	meta := object.Of(raw)
	if token := meta["progressToken"]; given(token) && kindOf(token) != "string" && !isID(token) {
		return mustBe(path+".progressToken", "a string or a whole number below 2^53", token)
	}
	if level := meta[mcpsdk.MetaKeyLogLevel]; given(level) {
		return levelFits(fmt.Sprintf("%s[%q]", path, mcpsdk.MetaKeyLogLevel), level)
	}
	return nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func levelFits(path string, raw json.RawMessage) error {
	var level string
	if _ = json.Unmarshal(raw, &level); !slices.Contains(mcpcall.LogLevels, level) {
		return mustBe(path, "one of "+strings.Join(mcpcall.LogLevels, ", "), raw)
	}
	return nil
}

// answersFit holds each answer to what the SDK takes for one; whether it is one to the
// question is for that to say.
func answersFit(path string, raw json.RawMessage) error {
	if err := fits[map[string]json.RawMessage](path, raw); err != nil {
		return err
	}
	answers := object.Of(raw)
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		path, answer := path+"."+key, answers[key]
		one, _ := json.Marshal(object.Fields{key: answer}) // of JSON
		if err := new(mcpsdk.InputResponseMap).UnmarshalJSON(one); err != nil {
			return worded(path, "an answer, such as {\"action\": \"accept\"} with its content", answer, err)
		}
	}
	return nil
}

func referenceFits(path string, raw json.RawMessage) error {
	type texts struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if err := fits[texts](path, raw); err != nil {
		return err
	}
	if given(raw) && json.Unmarshal(raw, new(mcpsdk.CompleteReference)) != nil {
		return mustBe(path, `{"type": "ref/prompt", "name": NAME} or {"type": "ref/resource", "uri": URI}`, raw)
	}
	return nil
}
