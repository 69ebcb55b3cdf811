package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/cpus"
	"github.com/toolhost/toolhost/internal/strictjson"
	"github.com/toolhost/toolhost/plugin/schema"
)

// request is one that may be carried out.
type request struct {
	w     http.ResponseWriter
	r     *http.Request
	route route
	who   caller
	body  json.RawMessage // checked by the route's schema; {} if there was none
	// held is the memory for the body, until it is decoded.
	held    *held
	release func()
}

// serve is what all routes have in common.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route route) {
	q := &request{w: w, r: r, route: route}
	if route.method == http.MethodGet && route.stream == "" { // calls count by themselves
		defer cpus.Busy()()
	}
	err := s.prepare(q)
	if q.release != nil {
		defer q.release()
	}
	if err == nil {
		err = route.handle(s, q)
	}
	if err != nil {
		fail(w, err)
	}
}

func (s *Server) prepare(q *request) (err error) {
	if q.r.Method != q.route.method {
		q.w.Header().Set("Allow", q.route.method)
		return refuse(codeMethod, "this is not answered to "+printable(q.r.Method), "use "+q.route.method)
	}
	if q.who, err = s.admit(q.r, q.route.need, q.route.public); err != nil {
		return err
	}
	if id := q.r.PathValue("turnId"); !childrenOf(q.r.Context()).mayUse(id) {
		return notActive(id)
	}
	if err := checkQuery(q.r, q.route.query); err != nil {
		return err
	}
	if q.held, q.release, err = s.intake.count(q.r, q.w, q.who, s.config.MaxBodyBytes); err != nil {
		return err
	}
	q.body, err = s.readBody(q)
	if q.route.in == nil { // nobody decodes it
		q.body = nil
		q.held.release()
	}
	return err
}

// decode fills v from the body, which satisfies the schema of v's type. It can be
// done once: the body is given up, and what came of it counts until the answer.
func (q *request) decode(v any) error {
	defer func() {
		q.held.settle(int64(len(q.body)))
		q.body = nil
	}()
	if err := json.Unmarshal(q.body, v); err != nil {
		return refuse(codeInvalid, printable(schema.DecodeError(err).Error()), "see the schema in /api/openapi.json")
	}
	return nil
}

// wantsStream reports whether the client accepts a stream where the route has one.
func (q *request) wantsStream() bool { return accepts(q.r, eventStream) }

// answer writes the route's success.
func (q *request) answer(value any) error {
	respond(q.w, q.route.status, value)
	return nil
}

// checkQuery refuses parameters that nobody reads: they are mistakes.
func checkQuery(r *http.Request, known []parameter) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(codeInvalid, "the query is malformed", "URL-encode it")
	}
	for name, list := range values {
		if !slices.ContainsFunc(known, func(p parameter) bool { return p.name == name }) {
			return refuse(codeInvalid, "there is no parameter "+printable(name)+" here", "leave it out")
		}
		if len(list) > 1 {
			return refuse(codeInvalid, "the parameter "+name+" is given more than once", "give it once")
		}
	}
	return nil
}

// badJSONRemedy is all that strictjson demands.
var badJSONRemedy = fmt.Sprintf("send one JSON object in UTF-8, with each key once, nested no deeper than %d", strictjson.MaxDepth)

// readBody takes the whole body, bounded in size; guarded bounds the wait for it.
func (s *Server) readBody(q *request) (json.RawMessage, error) {
	expected := min(max(q.r.ContentLength, 0), s.config.MaxBodyBytes)
	read := q.held.room(expected)
	read.Grow(int(expected) + bytes.MinRead)
	if _, err := read.ReadFrom(http.MaxBytesReader(q.w, q.r.Body, s.config.MaxBodyBytes)); err != nil {
		return nil, unread(err)
	}
	raw := read.Bytes()
	var err error
	if q.held.decoded, err = s.intake.turn(q.r.Context(), len(raw)); err != nil {
		return nil, err
	}
	if len(raw) > 0 || q.r.Header.Get("Content-Type") != "" {
		if err := checkMediaType(q.r); err != nil {
			return nil, err
		}
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	values, err := strictjson.Values(raw)
	switch {
	case strictjson.TooMany(err):
		return nil, refuse(codeTooLarge, printable(err.Error()), "send less at once")
	case err != nil:
		return nil, refuse(codeBadJSON, printable(err.Error()), badJSONRemedy)
	}
	if err := q.held.takeValues(q.r.Context(), values); err != nil {
		return nil, err
	}
	if err := s.schemas.check(q.route.in, raw); err != nil {
		return nil, refuse(codeInvalid, printableUpTo(err.Error(), maxRuleRunes), "see the schema in /api/openapi.json")
	}
	return raw, nil
}

// unread says why a body could not be read.
func unread(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuse(codeTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), "send less at once")
	}
	if lacksMemory(err) {
		return noRoom(err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(codeTimeout, "the body did not come in time", "send it faster")
	}
	return refuse(codeInvalid, "the body could not be read: "+printable(err.Error()), "send all of it")
}

func checkMediaType(r *http.Request) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" {
		return refuse(codeMediaType, "the Content-Type is not JSON", "set Content-Type: application/json")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" {
		return refuse(codeMediaType, "the Content-Encoding is "+printable(coding), "send the body as it is, without a Content-Encoding")
	}
	return nil
}

// accepts reports whether the request names a media type among those that it takes. That
// it takes anything is not enough.
func accepts(r *http.Request, kind string) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			named, parameters, err := mime.ParseMediaType(part)
			if q, err := strconv.ParseFloat(parameters["q"], 64); err == nil && q == 0 {
				continue // RFC 9110, 12.4.2
			}
			if err == nil && named == kind {
				return true
			}
		}
	}
	return false
}
