package schema

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// explain puts what breaks the schema into the words of who gave the value: the
// place in it, the rule, and the value itself as far as it is short. Whether
// something does is for the library to say, whose words, which name places in the
// schema, are for what is not found.
func (s *Schema) explain(err error, value any) error {
	f := s.finder()
	switch found := f.broken(s.checked.root, value, ""); {
	case found != nil && !f.unsure:
		return found
	case f.doubt != nil:
		return f.doubt
	}
	return path("").says("%s", ends(strings.ReplaceAll(err.Error(), "\n", " "), maxRuleBytes))
}

func (s *Schema) finder() *finder {
	return &finder{pricer: pricer{checker: s.checked, left: maxSteps}, draft7: s.draft7, patterns: map[string]*regexp.Regexp{}}
}

// finder walks through a schema and a value, in the order in which the library
// validates, to the first rule that is broken. It pays for its steps as the
// pricer does.
type finder struct {
	pricer
	draft7   bool
	formats  bool // are rules, too
	patterns map[string]*regexp.Regexp
	// doubt is said of the first keyword that is taken for kept since it is not
	// known here; unsure is true once a choice among subschemas depended on one.
	doubt  error
	unsure bool
}

// broken is nil where no rule is.
func (f *finder) broken(node, value any, where path) error {
	if node == false {
		return where.says("nothing is allowed here")
	}
	rules, ok := node.(map[string]any)
	if !ok || !f.pay(1) {
		return nil
	}
	if ref, ok := rules["$ref"].(string); ok {
		target, _ := f.resolve(ref) // an error was found when the schema was parsed
		if err := f.broken(target, value, where); err != nil || f.draft7 {
			return err
		}
	}
	for _, look := range []func(rules map[string]any, value any, where path) error{literal, f.text, f.format, f.several, f.other, f.list, f.object} {
		if err := look(rules, value, where); err != nil {
			return err
		}
	}
	f.doubts(rules, where)
	return nil
}

// doubts notes the keywords that the walk leaves out.
func (f *finder) doubts(rules map[string]any, where path) {
	for _, keyword := range []string{"$dynamicRef", "unevaluatedItems", "unevaluatedProperties"} {
		if _, ok := rules[keyword]; ok && f.doubt == nil {
			f.doubt = where.says("it does not fit the %s of its schema", keyword)
		}
	}
}

// fits says whether a value breaks no rule of a subschema.
func (f *finder) fits(node, value any) bool {
	before := f.doubt
	f.doubt = nil
	kept := f.broken(node, value, "") == nil
	f.unsure = f.unsure || f.doubt != nil || f.left < 0
	if before != nil {
		f.doubt = before
	}
	return kept
}

func (f *finder) matches(pattern, text string) bool {
	f.payMatch(pattern, text)
	compiled := f.patterns[pattern]
	if compiled == nil {
		var err error
		if compiled, err = regexp.Compile(pattern); err != nil { // which the library has found
			return true
		}
		f.patterns[pattern] = compiled
	}
	return compiled.MatchString(text)
}

// literal has the rules that look at a value alone.
func literal(rules map[string]any, value any, where path) error {
	equals := func(one any) bool { return jsonschema.Equal(one, value) }
	if bound, ok := rules["type"]; ok && !isOf(value, typesOf(bound)) {
		return where.says("want %s, not %s", typeWords(bound), show(value))
	}
	if values, ok := rules["enum"].([]any); ok && !slices.ContainsFunc(values, equals) {
		return where.says("want one of %s, not %s", literals(values), show(value))
	}
	if one, ok := rules["const"]; ok && !equals(one) {
		return where.says("want %s, not %s", literals([]any{one}), show(value))
	}
	return within(rules, value, where, "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")
}

func within(rules map[string]any, value any, where path, keywords ...string) error {
	for _, keyword := range keywords {
		bound, ok := rules[keyword].(float64)
		if n, is := measured(keyword, value); ok && is && outside(keyword, n, bound) {
			return where.says(boundForms[keyword], show(bound), measure(keyword, value))
		}
	}
	return nil
}

func (f *finder) text(rules map[string]any, value any, where path) error {
	pattern, ok := rules["pattern"].(string)
	if text, is := value.(string); ok && is && !f.matches(pattern, text) {
		return where.says("want a string that matches the pattern %s, not %s", ends(pattern, maxRuleBytes), show(value))
	}
	return nil
}
