package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/text"
)

const (
	maxResponseBytes = 8 << 20
	// maxDepth is of a response, of the arguments inside a string of it, and of
	// a schema.
	maxDepth = 256
)

// LimitError reports a response that exceeds a limit.
type LimitError struct {
	// What is the unit of the limit: bytes, or levels of nesting.
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("more than %d %s", e.Limit, e.What)
}

// maxEnvelope is how deep in a response a call's arguments are, with room to
// spare: these may have maxDepth levels of their own.
const maxEnvelope = 16

// open returns a response as compact JSON, valid UTF-8 and within the limits.
// Where it is nested too deep its depths are left out, so that what they belong
// to can be found: then it is deep.
func open(response []byte) (raw json.RawMessage, deep bool, err error) {
	if len(response) > maxResponseBytes {
		return nil, false, &LimitError{"bytes", maxResponseBytes}
	}
	if deep = !withinDepth(response, maxDepth+maxEnvelope); deep {
		response = hollow(response, maxDepth+maxEnvelope)
	}
	if raw, err = tidy(response); err != nil && deep {
		err = errDeep
	}
	return raw, deep, err
}

var errDeep = &LimitError{"levels of nesting", maxDepth}

// compact checks that raw is JSON within maxDepth, and makes it compact and
// valid UTF-8.
func compact(raw []byte) (json.RawMessage, error) {
	if !withinDepth(raw, maxDepth) {
		return nil, errDeep
	}
	return tidy(raw)
}

func tidy(raw []byte) (json.RawMessage, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, bytes.ToValidUTF8(raw, []byte(replacement))); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return out.Bytes(), nil
}

// withinDepth says whether JSON is nested no deeper than limit. What is not
// JSON gets either answer.
func withinDepth(raw []byte, limit int) bool {
	for _, depth := range depths(raw) {
		if depth > limit {
			return false
		}
	}
	return true
}

// hollow empties whatever is one level deeper than limit.
func hollow(raw []byte, limit int) []byte {
	out := make([]byte, 0, len(raw))
	from := 0
	for i, depth := range depths(raw) {
		switch bracket := raw[i] == '[' || raw[i] == '{'; {
		case bracket && depth == limit+1:
			out = append(out, raw[from:i+1]...)
		case !bracket && depth == limit:
			from = i
		}
	}
	return append(out, raw[from:]...)
}

// depths gives the places of brackets in JSON, each with the depth after it.
func depths(raw []byte) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		depth, quoted := 0, false
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; {
			case quoted && c == '\\':
				i++
				continue
			case c == '"':
				quoted = !quoted
				continue
			case quoted:
				continue
			case c == '[' || c == '{':
				depth++
			case c == ']' || c == '}':
				depth--
			default:
				continue
			}
			if !yield(i, depth) {
				return
			}
		}
	}
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
	s, _ := textOf(o[key])
	return s
}

func textOf(raw json.RawMessage) (s string, ok bool) {
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
	calls, err := readBounded(response, read)
	if err != nil {
		return nil, fmt.Errorf("cannot read the tool calls of the %s response: %w", name, err)
	}
	return calls, nil
}

// readBounded reads calls within the limits, that can all be answered.
func readBounded(raw []byte, read func(json.RawMessage) ([]Call, error)) ([]Call, error) {
	opened, deep, err := open(raw)
	var calls []Call
	if err == nil {
		calls, err = read(opened)
	}
	if deep && !slices.ContainsFunc(calls, func(c Call) bool { return c.deep }) {
		err = errDeep
	}
	if err == nil {
		err = checkCalls(calls)
	}
	if err != nil {
		return nil, err
	}
	broken := !utf8.Valid(raw)
	for i := range calls {
		calls[i].mustName()
		if broken {
			calls[i].mustBeWhole()
		}
	}
	return calls, nil
}

// checkCalls refuses calls that cannot be told apart or answered.
func checkCalls(calls []Call) error {
	seen := make(map[string]int, len(calls))
	for i, c := range calls {
		if c.ID == "" {
			return fmt.Errorf("call %d (of %q) has no id: give each call a unique id, by which it is answered", i+1, shorten(c.Tool))
		}
		if first, twice := seen[c.ID]; twice {
			return fmt.Errorf("the calls %d and %d have the id %q: give each call a unique id", first+1, i+1, shorten(c.ID))
		}
		seen[c.ID] = i
	}
	return nil
}

// mustName refuses a call without a tool.
func (c *Call) mustName() {
	if c.Tool == "" && c.Problem == "" {
		c.refuse("it names no tool")
	}
}

// mustBeWhole refuses a call of a response that is not UTF-8 if its arguments are damaged:
// with other characters in their place nobody has asked for them.
func (c *Call) mustBeWhole() {
	if c.Problem == "" && (bytes.Contains(c.Arguments, []byte(replacement)) || bytes.Contains(c.Meta, []byte(replacement))) {
		c.refuse("it is not in UTF-8")
	}
}

// apiError is the error that an API answered with, if it did.
func apiError(top object) error {
	raw := top["error"]
	if absent(raw) {
		return nil
	}
	message, ok := textOf(raw)
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
	case c.tooDeep(raw):
		c.refuse(fmt.Sprintf("the arguments cannot be read: %v", errDeep))
	case raw[0] == '{':
		c.Arguments = raw
	default:
		c.refuse("the arguments are not a JSON object")
	}
}

// takeMeta takes compact JSON as what is beside the arguments, under key.
func (c *Call) takeMeta(key string, raw json.RawMessage) {
	switch {
	case absent(raw):
	case c.tooDeep(raw):
		c.refuse(fmt.Sprintf("%s cannot be read: %v", key, errDeep))
	case raw[0] != '{':
		c.refuse(key + " is not a JSON object")
	default:
		c.Meta = raw
	}
}

func (c *Call) tooDeep(raw json.RawMessage) bool {
	deep := !withinDepth(raw, maxDepth)
	c.deep = c.deep || deep
	return deep
}

// takeText takes arguments as OpenAI sends them, JSON within a string. Models
// leave the string empty for tools that take none, and some servers send the
// object itself.
func (c *Call) takeText(raw json.RawMessage) {
	s, ok := textOf(raw)
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

func shorten(s string) string { return text.Cut(s, maxQuotedRunes+1) }
