// Package callargs makes a call's arguments of what people type: key=value
// words, read by the types of the tool's own schema, or whole JSON.
package callargs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
	jsonschema "github.com/toolhost/toolhost/plugin/schema"
)

// maxBytes bounds what is read as whole arguments; a supervisor's own limit is
// smaller and gives the better message.
const maxBytes = 16 << 20

// Of makes arguments of key=value words, or of whole ones where these are given; of neither
// it makes an empty object.
func Of(words []string, whole string, stdin io.Reader, schema []byte) (json.RawMessage, error) {
	switch {
	case whole != "" && len(words) > 0:
		return nil, errors.New("give either --args or key=value words, not both")
	case whole != "":
		return Whole(whole, stdin)
	case len(words) == 0:
		return json.RawMessage("{}"), nil
	}
	return Pairs(words, schema)
}

// Whole takes arguments as one JSON object; "-" reads it from stdin.
func Whole(value string, stdin io.Reader) (json.RawMessage, error) {
	raw := []byte(value)
	if value == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(stdin, maxBytes+1)); err != nil {
			return nil, fmt.Errorf("cannot read arguments from stdin: %w", err)
		}
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("the arguments have more than %d bytes: hand over a file's path instead", maxBytes)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("--args is not a JSON object: %w", jsonschema.DecodeError(err))
	}
	if object == nil {
		return nil, fmt.Errorf("--args is null: give a JSON object, such as {}")
	}
	return raw, nil
}

// Pairs makes arguments of key=value words. A value is taken as the type that
// the tool's JSON Schema gives the key, and a key that is repeated as a list
// where the schema takes one. What does not fit its type goes on as text: the
// check against the schema then says what is wrong.
func Pairs(words []string, schema []byte) (json.RawMessage, error) {
	types, items := Types(schema), itemTypes(schema)
	object := map[string]json.RawMessage{}
	lists := map[string][]json.RawMessage{}
	given := map[string]int{}
	for _, word := range words {
		key, _, _ := strings.Cut(word, "=")
		given[key]++
	}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("argument %q is not key=value: want one of %s, or --args '{...}'", word, keys(types))
		}
		if !utf8.ValidString(word) {
			return nil, fmt.Errorf("argument %q is not UTF-8: hand over text in UTF-8, or a file's path", strings.ToValidUTF8(key, "\uFFFD"))
		}
		raw, item := typed(value, types[key], given[key] > 1)
		switch {
		case item:
			raw, _ = typed(value, items[key], false)
			lists[key] = append(lists[key], raw)
		case object[key] != nil:
			return nil, fmt.Errorf("argument %s is given twice and is not a list: leave one of them out", key)
		default:
			object[key] = raw
		}
	}
	for key, items := range lists {
		if object[key] != nil {
			return nil, fmt.Errorf("argument %s is given both as a whole list and item by item: leave one of them out", key)
		}
		list, err := json.Marshal(items)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", key, err)
		}
		object[key] = list
	}
	return json.Marshal(object)
}

// typed encodes one value, of a key that may be repeated; item is true for one item of
// a list.
func typed(value string, types []string, repeated bool) (raw json.RawMessage, item bool) {
	text, _ := json.Marshal(value)
	isText, isList := slices.Contains(types, "string"), slices.Contains(types, "array")
	switch {
	case isText && !(isList && repeated):
		return text, false
	case isList && (isText || !isWhole(value, types, repeated)):
		return text, true
	case (len(types) > 0 || composite(value)) && json.Valid([]byte(value)):
		return json.RawMessage(value), false
	}
	return text, false
}

// isWhole says whether a value for what may be a list is all of it, and not an item.
func isWhole(value string, types []string, repeated bool) bool {
	var kind string
	switch {
	case strings.HasPrefix(value, "["):
		kind = "array"
	case repeated:
	case strings.HasPrefix(value, "{"):
		kind = "object"
	case value == "null":
		kind = "null"
	}
	return slices.Contains(types, kind) && json.Valid([]byte(value))
}

// composite says whether a value looks like a JSON object or list; where no
// type is declared only these are taken for JSON.
func composite(value string) bool {
	return strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
}

// maxKeys and maxKeyRunes bound what an error says of a tool's parameters.
const (
	maxKeys     = 30
	maxKeyRunes = 60
)

func keys(types map[string][]string) string {
	if len(types) == 0 {
		return "the tool's parameters"
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(types)) {
		list = append(list, text.Cut(terminal.OneLine(key), maxKeyRunes)+"=")
	}
	if more := len(list) - maxKeys; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxKeys], " "), more)
	}
	return strings.Join(list, " ")
}

// VariableForm is that of a variable's name, VariablePattern the same as a text.
var VariableForm = lazy.Regexp(VariablePattern)

const VariablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

// WrongVariable says what keeps a name from being that of a variable for a tool;
// empty is nothing.
func WrongVariable(name string) string {
	switch {
	case !VariableForm().MatchString(name):
		return "is not a name of a variable: write letters, digits and _"
	case name == "TOOLHOST_PLUGIN" || strings.HasPrefix(name, "PLUGIN_"):
		return "belongs to the handshake between toolhost and its plugins, which it would break: take it out"
	case slices.Contains(api.CallVariables, name):
		return "says where a call stands, which toolhost sets by itself: take it out"
	}
	return ""
}

// CheckEnv refuses entries that Environment can give no tool. Variables of the
// handshake, and of the call's place, just don't reach it.
func CheckEnv(entries []string) error {
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "=")
		if wrong := WrongVariable(name); wrong != "" && !VariableForm().MatchString(name) {
			return fmt.Errorf("--env %q: the name %q %s", entry, name, wrong)
		}
	}
	return nil
}

// Environment turns each K into K=V of this process's own environment; one
// that is not set is left out. K=V stays.
func Environment(entries []string) []string {
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
