package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/api"
)

// validator holds answers to the document, and to more: no field may be in
// them that it does not have.
type validator struct {
	t       testing.TB
	schemas map[string]*jsonschema.Schema
	match   *http.ServeMux
}

func newValidator(t testing.TB) *validator {
	v := &validator{t: t, schemas: map[string]*jsonschema.Schema{}, match: http.NewServeMux()}
	raw, err := json.Marshal(componentSchemas(t, true))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(componentRef), []byte("#/$defs/")), &v.schemas); err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		v.match.Handle(r.method+" "+pattern(r.path), http.NotFoundHandler())
	}
	return v
}

// routeOf finds the route of a request; false where there is none.
func (v *validator) routeOf(r *http.Request) (route, bool) {
	_, found := v.match.Handler(r)
	for _, candidate := range routes {
		if candidate.method+" "+pattern(candidate.path) == found {
			return candidate, true
		}
	}
	return route{}, false
}

// valid checks JSON by a component.
func (v *validator) valid(component string, raw []byte) {
	v.t.Helper()
	root := &jsonschema.Schema{Ref: "#/$defs/" + component, Defs: v.schemas}
	resolved, err := root.Resolve(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		v.t.Errorf("no JSON: %v: %s", err, raw)
		return
	}
	if err := resolved.Validate(value); err != nil {
		v.t.Errorf("it is no %s: %v\n%s", component, err, raw)
	}
}

// answer checks a whole answer and returns its body.
func (v *validator) answer(r *http.Request, response *http.Response) []byte {
	v.t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return raw
	}
	route, known := v.routeOf(r)
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		v.failure(r, response, known, route, raw)
	case !known:
		v.t.Errorf("%s %s: status %d, but it is not a route", r.Method, r.URL, response.StatusCode)
	case kind == eventStream && route.stream != "":
		v.frames(raw)
	case kind == ndjson && route.kind == ndjson:
		for line := range bytes.Lines(raw) {
			v.valid("Event", line)
		}
	case kind == "application/json" && response.StatusCode == route.status:
		if route.out != nil {
			v.valid(route.out.Name(), raw)
		}
	default:
		v.t.Errorf("%s %s: status %d, %q is not documented", r.Method, r.URL, response.StatusCode, kind)
	}
	return raw
}

// failure checks that an error is one that the route is documented to have.
func (v *validator) failure(r *http.Request, response *http.Response, known bool, route route, raw []byte) {
	v.t.Helper()
	v.valid("Failure", raw)
	if !known {
		return
	}
	responses := operation(route)["responses"].(object)
	if _, ok := responses[strconv.Itoa(response.StatusCode)]; !ok {
		v.t.Errorf("%s %s: status %d is not documented: %s", r.Method, r.URL, response.StatusCode, raw)
	}
}

// frames checks a stream of events.
func (v *validator) frames(raw []byte) (kinds []string) {
	v.t.Helper()
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\n\n"), "\n\n") {
		var kind, data string
		for line := range strings.Lines(frame) {
			if value, ok := strings.CutPrefix(line, "event: "); ok {
				kind = strings.TrimSpace(value)
			}
			if value, ok := strings.CutPrefix(line, "data: "); ok {
				data += value
			}
		}
		if kind == "" {
			continue
		}
		kinds = append(kinds, kind)
		component := map[string]string{string(api.EventGap): typeOf[api.Gap]().Name(), kindResults: typeOf[api.Results]().Name(), kindError: typeOf[api.Failure]().Name()}[kind]
		if component == "" {
			component = typeOf[api.Event]().Name()
		}
		v.valid(component, []byte(data))
	}
	return kinds
}
