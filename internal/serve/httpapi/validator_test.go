package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/api"
)

// validator holds answers to the document, and to more: no field may be in
// them that it does not have.
type validator struct {
	t     testing.TB
	match *http.ServeMux
}

// documented are the document's components, each resolved once: to do so for every answer
// took most of these tests' time.
var documented struct {
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	resolved map[string]*jsonschema.Resolved
}

func componentOf(t testing.TB, name string) *jsonschema.Resolved {
	t.Helper()
	c := &documented
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas == nil {
		raw, err := json.Marshal(componentSchemas(t, true))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte(componentRef), []byte("#/$defs/")), &c.schemas); err != nil {
			t.Fatal(err)
		}
		c.resolved = map[string]*jsonschema.Resolved{}
	}
	if c.resolved[name] == nil {
		resolved, err := (&jsonschema.Schema{Ref: "#/$defs/" + name, Defs: c.schemas}).Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.resolved[name] = resolved
	}
	return c.resolved[name]
}

func newValidator(t testing.TB) *validator {
	v := &validator{t: t, match: http.NewServeMux()}
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
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		v.t.Errorf("no JSON: %v: %s", err, raw)
		return
	}
	if err := componentOf(v.t, component).Validate(value); err != nil {
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
