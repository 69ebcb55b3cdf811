package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxStdinArguments bounds what --args - reads; the supervisor's own limit is
// smaller and gives the better message.
const maxStdinArguments = 16 << 20

// readArguments takes whole arguments from --args.
func readArguments(value string) (json.RawMessage, error) {
	raw := []byte(value)
	if value == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(os.Stdin, maxStdinArguments)); err != nil {
			return nil, usageError("cannot read arguments from stdin: %w", err)
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, usageError("--args is no JSON object: %w", err)
	}
	return raw, nil
}

// pairArguments makes arguments of key=value words. A value is taken as the
// type that the tool's schema gives the key; text stays text.
func pairArguments(words []string, tool *pluginv1.ToolDescription) (json.RawMessage, error) {
	types := propertyTypes(tool.GetInputSchema())
	object := map[string]json.RawMessage{}
	lists := map[string][]json.RawMessage{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, usageError("argument %q is not key=value: give one of %s, or --args '{...}'", word, keysOf(types))
		}
		raw, repeated := typed(value, types[key])
		if repeated {
			lists[key] = append(lists[key], raw)
			continue
		}
		object[key] = raw
	}
	for key, items := range lists {
		list, err := json.Marshal(items)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", key, err)
		}
		object[key] = list
	}
	return json.Marshal(object)
}

// typed encodes one value. What does not fit its type goes on as text: the
// check against the schema then says what is wrong. repeated is true for one
// item of a list.
func typed(value string, types []string) (raw json.RawMessage, repeated bool) {
	text, _ := json.Marshal(value)
	for _, t := range types {
		switch t {
		case "string":
			return text, false
		case "array":
			if strings.HasPrefix(value, "[") && json.Valid([]byte(value)) {
				return json.RawMessage(value), false
			}
			return text, true
		}
	}
	if len(types) > 0 && json.Valid([]byte(value)) {
		return json.RawMessage(value), false
	}
	return text, false
}

// propertyTypes reads the types of a schema's top-level properties.
func propertyTypes(schema []byte) map[string][]string {
	var s struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	types := map[string][]string{}
	for name, property := range s.Properties {
		var one string
		var many []string
		if json.Unmarshal(property.Type, &one) == nil {
			many = []string{one}
		} else {
			_ = json.Unmarshal(property.Type, &many)
		}
		types[name] = many
	}
	return types
}

func keysOf(types map[string][]string) string {
	var keys []string
	for key := range types {
		keys = append(keys, key+"=")
	}
	if len(keys) == 0 {
		return "the tool's parameters"
	}
	return strings.Join(sorted(keys), " ")
}

// environment turns K into K=V of this process's own environment.
func environment(entries []string) []string {
	var env []string
	for _, entry := range entries {
		if strings.Contains(entry, "=") {
			env = append(env, entry)
		} else if value, ok := os.LookupEnv(entry); ok {
			env = append(env, entry+"="+value)
		}
	}
	return env
}
