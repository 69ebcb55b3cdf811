package supervisor

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/api"
)

// resultSchema is the JSON Schema of a Result, from its Go type.
func resultSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	statuses := &jsonschema.Schema{Type: "string"}
	for _, status := range api.Statuses() {
		statuses.Enum = append(statuses.Enum, string(status))
	}
	schema, err := jsonschema.For[api.Result](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[api.Status]():      statuses,
	}})
	if err != nil {
		t.Fatal(err)
	}
	allowMore(schema)
	schema.Title, schema.Schema = "toolhost result", "https://json-schema.org/draft/2020-12/schema"
	return schema
}

// allowMore: a reader of today must take the fields of tomorrow.
func allowMore(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.AdditionalProperties = nil
	for _, property := range s.Properties {
		allowMore(property)
	}
	allowMore(s.Items)
}

func TestResultSchemaInDocs(t *testing.T) {
	needsDocs(t)
	const path = "../docs/result.schema.json"
	want, err := json.MarshalIndent(resultSchema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not the schema of Result (%v): run go test ./supervisor -run Schema -update", path, err)
	}
}

// A result satisfies its own schema, the emptiest one too.
func TestResultsSatisfyTheirSchema(t *testing.T) {
	resolved, err := resultSchema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	code := 3
	for _, r := range []*api.Result{
		{Status: api.StatusOK, Warnings: []string{}, Files: []api.File{}, Content: []api.Content{{Type: "blob", Data: []byte{1}}}, Kill: api.Kill{Signals: []string{}}, Structured: json.RawMessage(`{"x":1}`)},
		{Status: api.StatusTimeout, Warnings: []string{}, Files: []api.File{}, Content: []api.Content{}, Kill: api.Kill{Signals: []string{"SIGTERM"}}, Exit: api.Exit{Code: &code}, ToolError: &api.ToolError{}},
	} {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
