package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// member is one member of a JSON object, with its bytes as they were sent.
type member struct {
	key   string // unescaped
	text  []byte // `"key": value`
	value json.RawMessage
}

// members reads the top level of a JSON object and looks no deeper, so numbers keep
// their digits, and nesting costs no stack (encoding/json refuses a depth of more
// than 10000). Nothing and null are objects without members. The results alias
// object.
func members(object json.RawMessage) ([]member, error) {
	object = bytes.TrimSpace(object)
	if len(object) == 0 || string(object) == "null" {
		return nil, nil
	}
	if !json.Valid(object) {
		return nil, syntaxError(object)
	}
	if object[0] != '{' {
		return nil, errors.New("want a JSON object")
	}
	var found []member
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		m, err := nextMember(dec, object)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

func nextMember(dec *json.Decoder, object []byte) (member, error) {
	before := dec.InputOffset()
	key, err := dec.Token()
	if err != nil {
		return member{}, err
	}
	name, _ := key.(string) // valid JSON has no other keys
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return member{}, err
	}
	text := object[before:dec.InputOffset()]
	// The offset before a key is still in front of the comma.
	return member{key: name, text: bytes.TrimLeft(text, ", \t\r\n"), value: value}, nil
}

// join makes an object of the members' own bytes.
func join(list []member) json.RawMessage {
	texts := make([][]byte, len(list))
	for i, m := range list {
		texts[i] = m.text
	}
	return append(append([]byte{'{'}, bytes.Join(texts, []byte{','})...), '}')
}

// last finds the member that counts where a key is repeated, as in encoding/json.
func last(list []member, key string) (json.RawMessage, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].key == key {
			return list[i].value, true
		}
	}
	return nil, false
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

func syntaxError(text []byte) error {
	var ignored json.RawMessage
	return fmt.Errorf("malformed JSON: %w", json.Unmarshal(text, &ignored))
}
