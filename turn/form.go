package turn

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/plugin/schema"
)

// Fits returns an error if a value does not match an interaction's schema. The error
// names the field, the rule and, if it is short, the value. Answer checks every answer
// by it; call Fits to report a mismatch earlier.
func Fits(i api.Interaction, value json.RawMessage) error {
	check, _ := readSchema(i)
	return check(value)
}

// readSchema gives what answers are checked by, and the declared default: the
// schema's own or, of an object, what its properties' defaults make. An invalid
// schema, or one whose checking might not end, has neither; any JSON is an
// answer then, and the tool checks it itself. A secret has no default, and a
// default that does not fit is dropped silently.
func readSchema(i api.Interaction) (check func(json.RawMessage) error, declared json.RawMessage) {
	fits := anyJSON
	if parsed, err := schema.Parse(i.Schema); err == nil {
		fits = func(raw json.RawMessage) error {
			var value any
			if err := json.Unmarshal(raw, &value); err != nil {
				return err
			}
			return parsed.ValidateAnswer(value)
		}
		declared = declaredDefault(i.Schema)
	}
	if i.Secret {
		return func(raw json.RawMessage) error {
			if raw = bytes.TrimSpace(raw); fits(raw) != nil || raw[0] == '{' || raw[0] == '[' {
				return errors.New("it is not what was asked for") // nor could it be taken out of output
			}
			return nil
		}, nil
	}
	if len(declared) == 0 || fits(declared) != nil {
		return fits, nil
	}
	return fits, declared
}

func anyJSON(raw json.RawMessage) error {
	if !json.Valid(raw) {
		return errors.New("it is not a JSON value")
	}
	return nil
}

func declaredDefault(raw json.RawMessage) json.RawMessage {
	var form struct {
		Default    json.RawMessage            `json:"default"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &form) != nil {
		return nil
	}
	if len(form.Default) > 0 {
		return form.Default
	}
	whole := map[string]json.RawMessage{}
	for name, raw := range form.Properties {
		var property struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(raw, &property) == nil && len(property.Default) > 0 { // a schema may be true, too
			whole[name] = property.Default
		}
	}
	if len(whole) == 0 {
		return nil
	}
	value, _ := json.Marshal(whole) // of what was JSON
	return value
}
