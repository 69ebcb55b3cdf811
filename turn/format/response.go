package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	maxResponseBytes = 8 << 20
	// maxDepth is of a response, of the arguments inside a string of it, and of
	// a schema.
	maxDepth = 256
)

// LimitError says that something is too large to be read.
type LimitError struct {
	// What is counted: bytes, or levels of nesting.
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("more than %d %s", e.Limit, e.What)
}

// open returns a response as compact JSON, valid UTF-8 and within the limits.
func open(response []byte) (json.RawMessage, error) {
	if len(response) > maxResponseBytes {
		return nil, &LimitError{"bytes", maxResponseBytes}
	}
	return compact(response)
}

// compact checks that raw is JSON within maxDepth, and makes it compact and
// valid UTF-8.
func compact(raw []byte) (json.RawMessage, error) {
	if !withinDepth(raw, maxDepth) {
		return nil, &LimitError{"levels of nesting", maxDepth}
	}
	var out bytes.Buffer
	if err := json.Compact(&out, bytes.ToValidUTF8(raw, []byte(replacement))); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return out.Bytes(), nil
}

// withinDepth says whether JSON is nested no deeper than limit. What is no
// JSON gets either answer.
func withinDepth(raw []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > limit {
				return false
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return true
}

// object is a JSON object with its keys as they are written; encoding/json
// would take other spellings of a struct's.
type object map[string]json.RawMessage

// parseObject reads compact JSON.
func parseObject(raw json.RawMessage) (object, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var o object
	err := json.Unmarshal(raw, &o)
	return o, err
}

// text is the string under key, or empty.
func (o object) text(key string) string {
	s, _ := text(o[key])
	return s
}

func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func list(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	return items, json.Unmarshal(raw, &items) == nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// objects reads a list of objects; what names it in errors.
func objects(raw json.RawMessage, what string) ([]object, error) {
	items, ok := list(raw)
	if !ok {
		return nil, fmt.Errorf("no list %s: is it of another format?", what)
	}
	out := make([]object, 0, len(items))
	for i, item := range items {
		o, err := parseObject(item)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", what, i, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// readCalls reads the calls of a response of the named format.
func readCalls(name string, response []byte, read func(json.RawMessage) ([]Call, error)) ([]Call, error) {
	raw, err := open(response)
	var calls []Call
	if err == nil {
		calls, err = read(raw)
	}
	if err == nil {
		err = checkCalls(calls)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the tool calls of the %s response: %w", name, err)
	}
	return calls, nil
}

// checkCalls refuses calls that cannot be told apart or answered.
func checkCalls(calls []Call) error {
	seen := make(map[string]bool, len(calls))
	for i, c := range calls {
		switch {
		case c.ID == "":
			return fmt.Errorf("call %d (of %q) has no id", i+1, shorten(c.Tool))
		case c.Tool == "":
			return fmt.Errorf("call %q names no tool", shorten(c.ID))
		case seen[c.ID]:
			return fmt.Errorf("two calls have the id %q", shorten(c.ID))
		}
		seen[c.ID] = true
	}
	return nil
}

// apiError is the error that an API answered with, if it did.
func apiError(top object) error {
	raw := top["error"]
	if absent(raw) {
		return nil
	}
	message, ok := text(raw)
	if !ok {
		o, _ := parseObject(raw)
		message = o.text("message")
	}
	return fmt.Errorf("it is the API's error: %q", shorten(message))
}

const (
	problemCut    = "the model's output ended before the call was complete"
	problemCustom = "the call has free text as its input; the tool takes a JSON object"
)

// takeObject takes compact JSON as the call's arguments; absent or null is {}.
func (c *Call) takeObject(raw json.RawMessage) {
	switch {
	case absent(raw):
		c.Arguments = json.RawMessage(`{}`)
	case raw[0] == '{':
		c.Arguments = raw
	default:
		c.refuse("the arguments are not a JSON object")
	}
}

// takeText takes arguments as OpenAI sends them, JSON within a string. Models
// leave the string empty for tools that take none, and some servers send the
// object itself.
func (c *Call) takeText(raw json.RawMessage) {
	s, ok := text(raw)
	if !ok {
		c.takeObject(raw)
		return
	}
	if strings.TrimSpace(s) == "" {
		c.takeObject(nil)
		return
	}
	inner, err := compact([]byte(s))
	if err != nil {
		c.refuse(fmt.Sprintf("the arguments cannot be read: %v", err))
		return
	}
	c.takeObject(inner)
}

func (c *Call) refuse(problem string) { c.Arguments, c.Problem = nil, problem }

// maxQuotedRunes bounds what errors quote of a response.
const maxQuotedRunes = 200

func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxQuotedRunes {
			return s[:i] + "…"
		}
	}
	return s
}
