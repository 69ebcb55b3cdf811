package redact

import (
	"bytes"
	"encoding/json"
)

var replacementJSON = []byte(`"` + Replacement + `"`)

// All is what stands for a JSON text that cannot be shown in parts.
func All() json.RawMessage { return bytes.Clone(replacementJSON) }

// JSON is raw without the secrets, and still JSON: it looks into strings, names
// of members included, whatever their escapes; a number or literal that holds
// one becomes a string. Where a secret spans more than that, as one that is a
// JSON text itself, all of raw becomes one string. raw shares its memory if it
// holds none. Names may become equal. Input that is not JSON is redacted as
// text.
func (s *Set) JSON(raw json.RawMessage) json.RawMessage {
	if s == nil {
		return raw
	}
	if !json.Valid(raw) {
		return s.Bytes(raw)
	}
	out := s.scalars(raw)
	if len(spansOf(s, out)) > 0 {
		return All()
	}
	return out
}

// scalars redacts each scalar of a valid JSON text.
func (s *Set) scalars(raw []byte) []byte {
	var out []byte
	copied := 0
	for at := 0; at < len(raw); {
		end := scalarEnd(raw, at)
		if end == at {
			at++
			continue
		}
		if token := s.scalar(raw[at:end]); token != nil {
			out = append(append(out, raw[copied:at]...), token...)
			copied = end
		}
		at = end
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}

// scalarEnd is where the scalar at an offset ends; an end of at says that it is not a scalar.
func scalarEnd(raw []byte, at int) int {
	if raw[at] != '"' {
		end := bytes.IndexAny(raw[at:], "\" \t\r\n{}[],:")
		if end < 0 {
			return len(raw)
		}
		return at + end
	}
	for at++; raw[at] != '"'; at++ {
		if raw[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// scalar is what takes a token's place, nil if it may stay.
func (s *Set) scalar(token []byte) []byte {
	if token[0] == '"' {
		var text string
		_ = json.Unmarshal(token, &text) // it is valid
		if redacted := s.String(text); redacted != text {
			return []byte(`"` + quoted(redacted, false) + `"`)
		}
	}
	if len(spansOf(s, token)) > 0 {
		return replacementJSON
	}
	return nil
}
