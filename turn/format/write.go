package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/lazy"
)

// encode writes JSON in which no character is escaped that needs not be, or
// hands on err.
func encode(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("bug: cannot encode JSON: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// mapResults makes one answer for each call, in their order.
func mapResults[T any](name string, calls []Call, results []*api.Result, one func(Call, *api.Result) T) ([]T, error) {
	if err := match(calls, results); err != nil {
		return nil, fmt.Errorf("cannot write results in the %s format: %w", name, err)
	}
	out := make([]T, 0, len(calls))
	for i, c := range calls {
		out = append(out, one(c, results[i]))
	}
	return out, nil
}

// match makes sure that every call gets exactly one result.
func match(calls []Call, results []*api.Result) error {
	if err := checkCalls(calls); err != nil {
		return err
	}
	if len(calls) != len(results) {
		return fmt.Errorf("%d calls have %d results", len(calls), len(results))
	}
	for i, r := range results {
		if r == nil {
			return fmt.Errorf("call %q has no result", shorten(calls[i].ID))
		}
	}
	return nil
}

// dialect is what an API refuses.
type dialect struct {
	names      func() *regexp.Regexp
	namesRule  string
	flatSchema bool // no anyOf and the like at the top of an input schema
}

var (
	modelAPI = dialect{lazy.Regexp(`^[a-zA-Z0-9_-]{1,64}$`), "1 to 64 letters, digits, _ and -", true}
	mcpAPI   = dialect{lazy.Regexp(`^[a-zA-Z0-9_.-]{1,128}$`), "1 to 128 letters, digits, _, - and dots", false}
)

// mapTools makes one entry for each tool, whose texts and schemas one gets
// clean. A tool without a description is described by its title.
func mapTools[T any](name string, a dialect, tools []Tool, one func(Tool) T) ([]T, error) {
	out := make([]T, 0, len(tools))
	errs := []error{checkNames(a, tools)}
	for _, t := range tools {
		var err error
		if t.InputSchema, err = inputSchema(a, t); err != nil {
			errs = append(errs, fmt.Errorf("the input schema of %q %w", shorten(t.Name), err))
		}
		t.OutputSchema = outputSchema(t)
		t.Title, t.Description = clean(t.Title), clean(t.Description)
		if strings.TrimSpace(t.Description) == "" {
			t.Description = t.Title
		}
		out = append(out, one(t))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cannot export tools in the %s format: %w", name, err)
	}
	return out, nil
}

// checkNames names every bad name.
func checkNames(a dialect, tools []Tool) error {
	seen := map[string]bool{}
	var errs []error
	for _, t := range tools {
		switch {
		case !a.names().MatchString(t.Name):
			errs = append(errs, fmt.Errorf("the name %q is not allowed: give the tool one of %s", shorten(t.Name), a.namesRule))
		case seen[t.Name]:
			errs = append(errs, fmt.Errorf("two tools have the name %q: give one of them another", t.Name))
		}
		seen[t.Name] = true
	}
	return errors.Join(errs...)
}

// inputSchema is clean, and of an object.
func inputSchema(a dialect, t Tool) (json.RawMessage, error) {
	if absent(t.InputSchema) {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	raw, ok := cleanJSON(t.InputSchema)
	if !ok {
		return nil, fmt.Errorf("is not valid JSON of at most %d levels", maxDepth)
	}
	schema, err := parseObject(raw)
	if err != nil || schema.text("type") != "object" {
		return nil, errors.New(`is not that of an object: give it "type": "object"`)
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		if a.flatSchema && schema[keyword] != nil {
			return nil, fmt.Errorf("has %s at its top, which the API refuses: move it into a property", keyword)
		}
	}
	return raw, nil
}

// outputSchema is empty unless it is of an object: structured results of other
// types have no place in MCP.
func outputSchema(t Tool) json.RawMessage {
	raw, ok := cleanJSON(t.OutputSchema)
	if !ok {
		return nil
	}
	if schema, err := parseObject(raw); err != nil || schema.text("type") != "object" {
		return nil
	}
	return raw
}
