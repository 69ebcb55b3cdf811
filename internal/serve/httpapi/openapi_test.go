package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/api"
)

// expositions are the formats of metrics; the first is the default.
var expositions = []string{exposition, "application/openmetrics-text", "application/vnd.google.protobuf"}

var update = flag.Bool("update", false, "write openapi.json anew")

// components are the types that the document has a schema of.
var components = []reflect.Type{
	reflect.TypeFor[api.Annotations](), reflect.TypeFor[api.Answer](), reflect.TypeFor[api.Batch](), reflect.TypeFor[api.BatchTurn](), reflect.TypeFor[api.Call](), reflect.TypeFor[api.CallSummary](),
	reflect.TypeFor[api.CallSummaries](), reflect.TypeFor[api.CurrentTool](), reflect.TypeFor[api.Done](), reflect.TypeFor[api.Error](), reflect.TypeFor[api.Failure](),
	reflect.TypeFor[api.Gap](), reflect.TypeFor[api.Health](), reflect.TypeFor[api.Interaction](), reflect.TypeFor[api.Interactions](), reflect.TypeFor[api.Approval](), reflect.TypeFor[api.Approvals](), reflect.TypeFor[api.LoginLink](), reflect.TypeFor[api.Login](), reflect.TypeFor[api.Session](), reflect.TypeFor[api.Whoami](),
	reflect.TypeFor[api.Model](), reflect.TypeFor[api.Policy](), reflect.TypeFor[api.Question](), reflect.TypeFor[api.Raised](), reflect.TypeFor[api.Results](), reflect.TypeFor[api.Tool](), reflect.TypeFor[api.Tools](), reflect.TypeFor[api.Turn](),
	reflect.TypeFor[api.TurnSpec](), reflect.TypeFor[api.TurnSummaries](), reflect.TypeFor[api.TurnSummary](), reflect.TypeFor[api.Turns](), reflect.TypeFor[api.CurrentUsage](),
	reflect.TypeFor[api.Result](), reflect.TypeFor[api.Event](), reflect.TypeFor[api.Worker](), reflect.TypeFor[api.Workers](),
}

// requests are those that come from outside: nothing may be in them that nobody
// reads.
var requests = []reflect.Type{reflect.TypeFor[api.TurnSpec](), reflect.TypeFor[api.Batch](), reflect.TypeFor[api.BatchTurn](), reflect.TypeFor[api.Call](), reflect.TypeFor[api.Answer](), reflect.TypeFor[api.Model](), reflect.TypeFor[api.Question](), reflect.TypeFor[api.Login]()}

// componentSchemas are the schemas of all components. Those of requests allow no fields
// that the types don't have; of the others clients must take more.
func componentSchemas(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for _, own := range components {
		known := map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[json.RawMessage](): {}, reflect.TypeFor[[]byte](): {Type: "string", ContentEncoding: "base64"},
			reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time"},
		}
		for _, other := range components {
			if other != own && !embeds(own, other) {
				known[other] = &jsonschema.Schema{Ref: componentRef + component(other)}
			}
		}
		schema, err := jsonschema.ForType(own, &jsonschema.ForOptions{TypeSchemas: known})
		if err != nil {
			t.Fatal(err)
		}
		tidy(schema, slices.Contains(requests, own))
		all[component(own)] = schema
	}
	bound(all)
	return all
}

// embeds says whether the fields of another type are a type's own.
func embeds(own, other reflect.Type) bool {
	field, ok := own.FieldByName(other.Name())
	return ok && field.Anonymous
}

// tidy puts right what the generator cannot know.
func tidy(s *jsonschema.Schema, closed bool) {
	if s == nil {
		return
	}
	if s.Ref != "" && s.Types != nil { // of a pointer: null, or what it points to
		*s = jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{{Type: "null"}, {Ref: s.Ref}}}
	}
	if slices.Equal(s.Types, []string{"null", "array"}) { // lists are empty, never absent
		s.Type, s.Types = "array", nil
	}
	if !closed && s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		tidy(property, closed)
	}
	tidy(s.Items, closed)
}

// bound adds the limits that types don't tell.
func bound(all map[string]*jsonschema.Schema) {
	boundSpec(all["TurnSpec"].Properties)
	boundSpec(all["BatchTurn"].Properties)
	for _, batch := range []string{"Batch", "BatchTurn"} {
		all[batch].Properties["calls"].MaxItems = jsonschema.Ptr(10_000)
	}
	question := all["Question"].Properties
	id(question["toolCallId"], "")
	id(question["toolName"], "")
	question["prompt"].MinLength, question["prompt"].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(16<<10)
	question["timeoutMs"].Minimum, question["timeoutMs"].Maximum = jsonschema.Ptr(0.0), jsonschema.Ptr(float64(1e9))
	all["Login"].Properties["link"].MaxLength = jsonschema.Ptr(256)
	call := all["Call"]
	id(call.Properties["id"], `^([^.]|[.][^.]|[.][.].)`)
	call.Properties["id"].MinLength = jsonschema.Ptr(1)
}

// id bounds what names something.
func id(s *jsonschema.Schema, pattern string) {
	s.MaxLength, s.Pattern = jsonschema.Ptr(128), pattern
}

func boundSpec(spec map[string]*jsonschema.Schema) {
	id(spec["turnId"], "^[A-Za-z0-9_:-][A-Za-z0-9._:-]*$")
	spec["turnId"].Not = &jsonschema.Schema{Const: jsonschema.Ptr(any("active"))} // GET turns/active is the list
	id(spec["agentId"], "")
	id(spec["sessionId"], "")
	for _, name := range []string{"maxCalls", "toolTimeMs", "deadlineMs", "reserveMs", "streamDurationMs"} {
		spec[name].Minimum, spec[name].Maximum = jsonschema.Ptr(0.0), jsonschema.Ptr(float64(1e9))
	}
	waits := spec["interactionTimeoutsMs"].AdditionalProperties
	waits.Minimum, waits.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(float64(1e9))
}

// commonCodes are those that any request can meet.
var commonCodes = []string{
	codeInvalid, codeBadJSON, codeUnauthorized, codeForbidden, codeThrottled, codeBadHost, codeBadOrigin, codeMethod, codeTimeout,
	codeTooLarge, codeMediaType, codeInternal,
}

type object = map[string]any

// describe makes the document.
func describe(t testing.TB) object {
	t.Helper()
	paths, schemas := map[string]object{}, componentSchemas(t)
	for _, r := range routes {
		if paths[r.path] == nil {
			paths[r.path] = object{}
		}
		paths[r.path][lower(r.method)] = operation(r, schemas)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "toolhost", "version": "1",
			"description": "Run the tools that language models ask for, as turns of batches; watch them, stop them, answer their questions, read their history.",
		},
		"servers":  []object{{"url": "http://localhost"}},
		"security": []object{{"token": []string{}}, {}},
		"paths":    paths,
		"components": object{
			"schemas": schemas, "responses": failures(),
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer", "description": "on TCP, also of a browser's session; on the unix socket the peer's user is enough"},
			},
		},
	}
}

func lower(method string) string { return string(bytes.ToLower([]byte(method))) }

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

func operation(r route, schemas map[string]*jsonschema.Schema) object {
	o := object{"summary": r.summary, "responses": responses(r)}
	var parameters []object
	for _, name := range placeholder.FindAllStringSubmatch(r.path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.query {
		schema := object{"type": p.kind}
		if p.kind == "date-time" {
			schema = object{"type": "string", "format": p.kind}
		}
		parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.description, "schema": schema})
	}
	if r.resumes {
		parameters = append(parameters, object{
			"name": lastEventID, "in": "header", "schema": object{"type": "integer"},
			"description": "as after, which it goes before: browsers send it when a stream broke off",
		})
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	if r.in != nil {
		needed := len(schemas[component(r.in)].Required) > 0 // no body is an empty object
		o["requestBody"] = object{"required": needed, "content": object{"application/json": object{"schema": ref(r.in)}}}
	}
	o["description"] = "Needs the role " + r.need.String() + "."
	if r.public {
		o["security"], o["description"] = []object{{}}, "Needs nobody known."
	}
	return o
}

func ref(t reflect.Type) object { return object{"$ref": componentRef + component(t)} }

// component names a type in the document, where the Usage of results has no name.
func component(t reflect.Type) string {
	if t == reflect.TypeFor[api.CurrentUsage]() {
		return "Usage"
	}
	return t.Name()
}

// responses are success, as JSON or otherwise, and every error.
func responses(r route) object {
	all := object{}
	if r.stream != "" {
		all["200"] = object{"description": "a stream, for clients that accept " + eventStream, "content": object{eventStream: object{
			"schema": object{"type": "string", "description": r.stream}, itemSchemas: eventSchemas(r),
		}}}
	}
	success := object{"description": http.StatusText(r.status)}
	switch {
	case r.out != nil:
		success["content"] = object{"application/json": object{"schema": ref(r.out)}}
	case r.kind == ndjson:
		success["content"] = object{ndjson: object{"schema": object{"type": "string", "description": "an event a line"}, itemSchemas: eventSchemas(r)}}
	case r.kind == plainJSON:
		success["content"] = object{plainJSON: object{"schema": object{"type": "object"}}}
	case r.kind == exposition:
		content := object{}
		for _, kind := range expositions {
			content[kind] = object{"schema": object{"type": "string"}}
		}
		content[expositions[2]] = object{} // which is binary
		success["content"] = content
	}
	if streamed, ok := all[strconv.Itoa(r.status)].(object); !ok {
		all[strconv.Itoa(r.status)] = success
	} else if r.out != nil {
		streamed["content"].(object)["application/json"] = object{"schema": ref(r.out)}
	}
	for _, code := range slices.Concat(commonCodes, r.refuses) {
		status := statuses[code]
		all[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + failureName(status)}
	}
	return all
}

// itemSchemas has the schemas of the parts of a stream: of the data of its events by
// their kinds, default for all others, and of lines. OpenAPI 3.1 has no word for it.
const itemSchemas = "x-item-schemas"

func eventSchemas(r route) object {
	all := object{"default": ref(reflect.TypeFor[api.Event]())}
	if r.stream != "" {
		all[string(api.EventGap)] = ref(reflect.TypeFor[api.Gap]())
	}
	if r.out == reflect.TypeFor[api.Results]() {
		all[kindResults] = ref(r.out)
	}
	if r.stream != "" && (r.resumes || all[kindResults] != nil) {
		all[kindError] = ref(reflect.TypeFor[api.Failure]())
	}
	return all
}

func failureName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// failures are the answers that are errors, by their status.
func failures() object {
	by := map[int][]string{}
	for code, status := range statuses {
		by[status] = append(by[status], code)
	}
	all := object{}
	for status, codes := range by {
		slices.Sort(codes)
		all[failureName(status)] = object{
			"description": "error of code " + strings.Join(codes, ", "),
			"content":     object{"application/json": object{"schema": ref(reflect.TypeFor[api.Failure]())}},
		}
		if header, has := failureHeaders[status]; has {
			all[failureName(status)].(object)["headers"] = object{header.name: object{
				"description": header.description, "required": true, "schema": object{"type": header.kind},
			}}
		}
	}
	return all
}

// failureHeaders are those that come with each error of a status.
var failureHeaders = map[int]parameter{
	http.StatusUnauthorized:       {"WWW-Authenticate", "string", "the scheme by which to authenticate (RFC 6750)"},
	http.StatusMethodNotAllowed:   {"Allow", "string", "the method to use"},
	http.StatusTooManyRequests:    {"Retry-After", "integer", "seconds after which to ask again"},
	http.StatusServiceUnavailable: {"Retry-After", "integer", "seconds after which to ask again"},
}

func TestDocumentIsFresh(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(describe(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		document = want
	}
	if !bytes.Equal(document, want) {
		t.Error("openapi.json is not what the routes say: run go test ./internal/serve/httpapi -run Fresh -update")
	}
}

// Every code of an error has a status, and every route says what it answers.
func TestRoutesAreWhole(t *testing.T) {
	t.Parallel()
	for _, r := range routes {
		if r.summary == "" || r.status == 0 || r.handle == nil {
			t.Errorf("%s %s: %+v", r.method, r.path, r)
		}
		for _, code := range r.refuses {
			if statuses[code] == 0 {
				t.Errorf("%s %s: no status for %s", r.method, r.path, code)
			}
		}
		for _, body := range []reflect.Type{r.in, r.out} {
			if body != nil && !slices.Contains(components, body) {
				t.Errorf("%s %s: no schema of %s", r.method, r.path, body)
			}
		}
	}
}

// A schema of bodies has what it refers to, and nothing else: a daemon holds each of them.
func TestBodySchemasAreSmall(t *testing.T) {
	all := map[string]json.RawMessage{
		"A": json.RawMessage(`{"items":{"$ref":"#/$defs/B"}}`), "B": json.RawMessage(`{"anyOf":[{"$ref":"#/$defs/C"},{"$ref":"#/$defs/A"}]}`),
		"C": json.RawMessage(`{}`), "D": json.RawMessage(`{"$ref":"#/$defs/A"}`),
	}
	var got struct {
		Ref  string                     `json:"$ref"`
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(bodySchema("A", all), &got); err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(got.Defs)); got.Ref != "#/$defs/A" || !slices.Equal(names, []string{"A", "B", "C"}) {
		t.Errorf("%s of %q", got.Ref, names)
	}
}
