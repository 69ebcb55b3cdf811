// Package openapi holds requests, and the answers to them, to an OpenAPI document, by a
// library that knows of the document alone.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

const (
	failure     = "Failure" // the component of every error
	eventStream = "text/event-stream"
	lines       = "application/x-ndjson"
	// itemSchemas has the schemas of the parts of a stream, by the kinds of events;
	// otherKinds is that of all others, and of lines.
	itemSchemas = "x-item-schemas"
	otherKinds  = "default"
)

// Document is one that was read. Its methods may be called from any goroutine.
type Document struct {
	doc     *openapi3.T
	match   *http.ServeMux
	schemas *schemas
}

// Parse reads a document. An answer must have no field that the document lacks, though
// the document itself lets clients take more.
func Parse(raw []byte) (*Document, error) {
	if _, err := load(raw); err != nil { // as it is published
		return nil, err
	}
	strict, err := closed(raw)
	if err != nil {
		return nil, err
	}
	d := &Document{match: http.NewServeMux()}
	if d.doc, err = load(strict); err != nil {
		return nil, err
	}
	if d.schemas, err = compile(strict); err != nil {
		return nil, err
	}
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			d.match.Handle(method+" "+pattern(path), found(path))
		}
	}
	return d, nil
}

func load(raw []byte) (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	return doc, doc.Validate(loader.Context)
}

// found is the path of a route.
type found string

// ServeHTTP implements http.Handler, for a mux that only finds it.
func (found) ServeHTTP(http.ResponseWriter, *http.Request) {}

// pattern has the mux take all that is left of a path for its last parameter.
func pattern(path string) string {
	if whole, ok := strings.CutSuffix(path, "}"); ok {
		return whole + "...}"
	}
	return path
}

// Exchange is a request with the answer to it.
type Exchange struct {
	Request *http.Request
	Sent    []byte // the request's body
	Status  int
	Header  http.Header
	Body    []byte
	// Cut: the answer broke off, so that its end may be missing.
	Cut bool
}

// Check says what of an exchange is not as the document has it. A request is held to it
// only if it was taken.
func (d *Document) Check(x Exchange) error {
	route := d.routeOf(x.Request)
	if route == nil {
		return d.checkUnrouted(x)
	}
	input := &openapi3filter.RequestValidationInput{
		Request: x.Request.Clone(context.Background()), PathParams: params(route.Path, x.Request), Route: route,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: true, SkipSettingDefaults: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		},
	}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: x.Status, Header: x.Header, Options: input.Options}
	errs := []error{openapi3filter.ValidateResponse(context.Background(), answer), d.checkBody(route, x)}
	if x.Status < http.StatusMultipleChoices {
		errs = append(errs, checkRequest(input, x.Sent))
	}
	return x.because(errors.Join(errs...))
}

func checkRequest(input *openapi3filter.RequestValidationInput, sent []byte) error {
	input.Request.Body, input.Request.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
	return openapi3filter.ValidateRequest(context.Background(), input)
}

// routeOf finds the operation of a request; nil for a request that the document lacks.
func (d *Document) routeOf(r *http.Request) *routers.Route {
	handler, _ := d.match.Handler(r)
	path, is := handler.(found)
	if !is || strings.Count(r.URL.EscapedPath(), "/") != strings.Count(string(path), "/") {
		return nil
	}
	item := d.doc.Paths.Value(string(path))
	operation := item.Operations()[r.Method]
	if operation == nil { // HEAD, which the mux takes for GET
		return nil
	}
	return &routers.Route{Spec: d.doc, Path: string(path), PathItem: item, Method: r.Method, Operation: operation}
}

// params are the parameters in a path.
func params(path string, r *http.Request) map[string]string {
	all, parts := map[string]string{}, strings.Split(r.URL.EscapedPath(), "/")
	for i, part := range strings.Split(path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			all[strings.TrimSuffix(name, "}")] = parts[i]
		}
	}
	return all
}

// checkUnrouted wants an error of the document's form for a request that has no operation.
func (d *Document) checkUnrouted(x Exchange) error {
	switch {
	case x.Status < http.StatusBadRequest:
		return x.because(errors.New("it is not in the document"))
	case x.Request.Method == http.MethodHead:
		return nil
	}
	return x.because(d.schemas.check(failure, x.Body))
}

// checkBody holds the body to the schema of its status and type.
func (d *Document) checkBody(route *routers.Route, x Exchange) error {
	response := route.Operation.Responses.Status(x.Status)
	if response == nil || x.Request.Method == http.MethodHead {
		return nil // which is said elsewhere
	}
	media := response.Value.Content.Get(x.Header.Get("Content-Type"))
	kind, _, _ := strings.Cut(x.Header.Get("Content-Type"), ";")
	switch {
	case media == nil:
		return fmt.Errorf("%q is not a type of its body", x.Header.Get("Content-Type"))
	case kind == eventStream:
		return d.checkEvents(media, x)
	case kind == lines:
		return d.checkLines(media, x)
	case media.Schema == nil || kind != "application/json" || x.Cut:
		return nil
	case media.Schema.Ref != "":
		return d.schemas.check(nameOf(media.Schema.Ref), x.Body)
	}
	var value any
	if err := json.Unmarshal(x.Body, &value); err != nil {
		return err
	}
	return media.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// whole are the parts of a stream that are, between its separators.
func whole(x Exchange, separator string) []string {
	parts := strings.Split(string(x.Body), separator)
	if x.Cut || parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func (d *Document) checkLines(media *openapi3.MediaType, x Exchange) (err error) {
	for _, line := range whole(x, "\n") {
		err = errors.Join(err, d.checkItem(media, otherKinds, line))
	}
	return err
}

// checkEvents reads what WHATWG HTML, 9.2.6, makes of a stream.
func (d *Document) checkEvents(media *openapi3.MediaType, x Exchange) (err error) {
	for _, frame := range whole(x, "\n\n") {
		kind, data := "", []string(nil)
		for line := range strings.SplitSeq(frame, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data = append(data, value)
			case "", "id": // a comment
			default:
				err = errors.Join(err, fmt.Errorf("%q is not a line of an event", line))
			}
		}
		if kind != "" {
			err = errors.Join(err, d.checkItem(media, kind, strings.Join(data, "\n")))
		}
	}
	return err
}

func (d *Document) checkItem(media *openapi3.MediaType, kind, raw string) error {
	var refs map[string]struct {
		Ref string `json:"$ref"`
	}
	all, _ := json.Marshal(media.Extensions[itemSchemas])
	if err := json.Unmarshal(all, &refs); err != nil {
		return err
	}
	one, is := refs[kind]
	if !is {
		one = refs[otherKinds]
	}
	if one.Ref == "" {
		return fmt.Errorf("a stream has no schema of its parts in %s", itemSchemas)
	}
	return d.schemas.check(nameOf(one.Ref), []byte(raw))
}

// because names the exchange in an error.
func (x Exchange) because(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: status %d, %q: %w\n%.2000s", x.Request.Method, x.Request.URL, x.Status, x.Header.Get("Content-Type"), err, bytes.TrimSpace(x.Body))
}
