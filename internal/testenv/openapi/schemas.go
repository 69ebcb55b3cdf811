package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const components = "#/components/schemas/"

func nameOf(ref string) string { return strings.TrimPrefix(ref, components) }

// schemas are a document's components, each compiled once: the library does it for each
// value.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
	good     map[uint64]bool // by the hashes of component and JSON: many read the same events
}

var seed = maphash.MakeSeed()

const place = "https://localhost/openapi.json"

func compile(raw []byte) (*schemas, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	s := &schemas{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}, good: map[uint64]bool{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	return s, s.compiler.AddResource(place, value)
}

func (s *schemas) of(name string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.compiled[name]; one != nil {
		return one, nil
	}
	one, err := s.compiler.Compile(place + components + name)
	if err == nil {
		s.compiled[name] = one
	}
	return one, err
}

// check holds JSON to a component.
func (s *schemas) check(name string, raw []byte) error {
	schema, err := s.of(name)
	if err != nil {
		return err
	}
	hash := maphash.String(seed, name) ^ maphash.Bytes(seed, raw)
	if s.was(hash) {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("not JSON: %w: %.200s", err, raw)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("not a %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good[hash] = true
	return nil
}

func (s *schemas) was(good uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.good[good]
}

// closed is a document whose components allow no fields but those that they name.
func closed(raw []byte) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	parts, _ := all["components"].(map[string]any)
	shut(parts["schemas"])
	return json.Marshal(all)
}

func shut(value any) {
	switch value := value.(type) {
	case map[string]any:
		_, open := value["additionalProperties"]
		if _, of := value["properties"].(map[string]any); of && !open && value["type"] != nil {
			value["additionalProperties"] = false
		}
		for _, one := range value {
			shut(one)
		}
	case []any:
		for _, one := range value {
			shut(one)
		}
	}
}
