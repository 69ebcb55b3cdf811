package wirejson

import "encoding/json"

// CleanFields is Clean for an object whose fields are of use one by one: it leaves
// out those that are unfit, and returns the rest, nil for none, together with the
// reason.
func CleanFields(raw []byte) (json.RawMessage, error) {
	whole, why := Clean(raw)
	if !IsUnfit(why) {
		return whole, why
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(Shallow(raw, MaxDepth+1), &fields) != nil { // what is emptied is unfit still
		return nil, why
	}
	for name, value := range fields {
		fits, err := clean(&scanner{raw: value, outer: 1})
		if fields[name] = fits; err != nil {
			delete(fields, name)
		}
	}
	if len(fields) == 0 {
		return nil, why
	}
	kept, _ := json.Marshal(fields) // of what was decoded from JSON
	return kept, why
}

// Shallow empties objects and arrays that are nested deeper than depth: decoders
// refuse all of a message that is too deep for them in one place. Invalid JSON stays
// invalid, unless the fault lies deeper.
func Shallow(raw []byte, depth int) []byte {
	s, kept := scanner{raw: raw}, []byte(nil)
	open, from := 0, 0 // what is kept from there on
	for s.at < len(raw) {
		switch raw[s.at] {
		case '"':
			if _, err := s.text(); err != nil {
				return raw
			}
			continue
		case '{', '[':
			if open++; open == depth+1 {
				kept = append(kept, raw[from:s.at+1]...)
			}
		case '}', ']':
			if open == depth+1 {
				from = s.at
			}
			open--
		}
		s.at++
	}
	if kept == nil || open > depth { // nothing is that deep, or its end is missing
		return raw
	}
	return append(kept, raw[from:]...)
}
