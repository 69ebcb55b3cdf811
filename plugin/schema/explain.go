package schema

import (
	"errors"
	"net/url"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// explain puts an error of validating into the words of who gave the value: the
// place in it, the rule, and the value itself as far as it is short. The library
// names places in the schema alone.
func (s *Schema) explain(err error, value any) error {
	e := &explainer{
		pricer: pricer{checker: s.checked, left: maxSteps}, schema: s.resolved.Schema(),
		ready: map[string]*jsonschema.Resolved{},
	}
	return e.explain(err, "", value, "")
}

// maxReady bounds the subschemas that are made ready for validating by them.
const maxReady = 32

// explainer follows a value through the schema to where it breaks a rule. Its
// pricer bounds what it validates once more on the way.
type explainer struct {
	pricer
	schema *jsonschema.Schema
	ready  map[string]*jsonschema.Resolved
}

// explain is at a subschema, a JSON pointer, and at the part of the value that it
// applies to.
func (e *explainer) explain(err error, at string, value any, where path) error {
	places, rule := chain(err)
	for _, next := range places[min(1, len(places)):] {
		here := at
		if at = next; next == "root" || next == e.schema.ID {
			at = ""
		}
		step, below := strings.CutPrefix(next, here+"/")
		if !below || e.refersTo(here, next) {
			continue
		}
		keyword, rest, _ := strings.Cut(step, "/")
		parts, descends := e.parts(here, keyword, unescape(rest), value, where)
		switch {
		case len(parts) == 1:
			value, where = parts[0].value, parts[0].path
		case descends:
			return e.search(parts, at, where, rule)
		}
	}
	return e.words(rule, at, value, where)
}

// chain takes apart what validating says: the subschemas that it went through,
// and the rule that is broken.
func chain(err error) (places []string, rule string) {
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		head := strings.TrimSuffix(err.Error(), ": "+inner.Error())
		places = append(places, strings.TrimPrefix(head, "validating "))
	}
	return places, err.Error()
}

// refersTo says whether the way from a subschema to another is a reference.
func (e *explainer) refersTo(at, next string) bool {
	node, _ := e.find(at)
	rules, _ := node.(map[string]any)
	ref, _ := rules["$ref"].(string)
	pointer, err := url.PathUnescape(ref)
	return err == nil && pointer == "#"+next
}

// search finds the part that a subschema refuses.
func (e *explainer) search(parts []part, at string, where path, rule string) error {
	for _, one := range parts {
		switch err, known := e.check(at, one.value); {
		case !known:
			return (where + "[…]").says("%s", ends(rule, maxRuleBytes))
		case err != nil:
			return e.explain(err, at, one.value, one.path)
		}
	}
	return (where + "[…]").says("%s", ends(rule, maxRuleBytes))
}

// check validates by one subschema; known is false where that would cost too
// much.
func (e *explainer) check(at string, value any) (broken error, known bool) {
	node, _ := e.find(at)
	e.nesting = 0
	if e.apply(node, value); e.left < 0 {
		return nil, false
	}
	resolved := e.ready[at]
	if resolved == nil {
		if len(e.ready) == maxReady {
			return nil, false
		}
		var err error
		if resolved, err = e.resolveAt(at); err != nil {
			return nil, false
		}
		e.ready[at] = resolved
	}
	return resolved.Validate(value), true
}

// whole is where the whole schema is for what refers to a part of it.
const whole = "toolhost:///schema"

func (e *explainer) resolveAt(at string) (*jsonschema.Resolved, error) {
	part := &jsonschema.Schema{Schema: e.schema.Schema, Ref: whole + (&url.URL{Fragment: at}).String()}
	return part.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) {
		own := *e.schema // which resolving writes to
		return &own, nil
	}})
}
