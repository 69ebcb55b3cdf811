package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

// param is a checked parameter, declared or inferred.
type param struct {
	Param
	array    bool
	kind     string // the type, of an array its items'
	required bool
	pattern  *regexp.Regexp
	used     bool
	piped    bool // it goes to stdin alone, and may hold NUL
}

// optional says whether a call may leave it without a value.
func (p *param) optional() bool { return !p.required && p.Default == nil }

// trusted says whether its values may begin with "-".
func (p *param) trusted() bool { return p.AllowDash || len(p.Enum) > 0 }

var scalarTypes = []string{TypeString, TypeInteger, TypeNumber, TypeBoolean}

// scriptNameForm keeps clear of every variable that sh or the system knows.
var scriptNameForm = lazy.Regexp(`^[a-z][a-z0-9_]{0,63}$`)

// declare checks the declared parameters.
func (p *plan) declare() {
	for i, declared := range p.spec.Params {
		path := "params." + declared.Name
		switch {
		case !nameForm().MatchString(declared.Name) || declared.Name == "_meta":
			p.complain(fmt.Sprintf("params[%d].name", i), "%s is not a name for a parameter: want a letter or _, then letters, digits, _ and -, 64 at most, and not _meta", shown(declared.Name))
			continue
		case p.params[declared.Name] != nil:
			p.complain(fmt.Sprintf("params[%d].name", i), "%s is declared twice: remove one", shown(declared.Name))
			continue
		case p.spec.Shell && declared.Name != p.stdin && !scriptNameForm().MatchString(declared.Name):
			p.complain(path, "%s is not a name for a shell variable of ours: want a lower-case letter, then lower-case letters, digits and _", shown(declared.Name))
		}
		p.add(p.newParam(path, declared))
	}
}

func (p *plan) add(param *param) {
	p.params[param.Name] = param
	p.order = append(p.order, param)
}

func (p *plan) newParam(path string, declared Param) *param {
	declared.Type = cmp.Or(declared.Type, TypeString)
	param := &param{Param: declared, array: declared.Type == TypeArray, kind: declared.Type}
	p.checkType(path, param)
	p.checkPattern(path, param)
	p.checkBounds(path, param)
	p.checkEnum(path, param)
	p.checkDefault(path, param)
	return param
}

func (p *plan) checkType(path string, param *param) {
	if !param.array && !slices.Contains(scalarTypes, param.Type) {
		p.complain(path+".type", "%s is not a type: want one of %s, %s", shown(param.Type), strings.Join(scalarTypes, ", "), TypeArray)
		param.kind = TypeString
	}
	if param.array {
		param.kind = param.Items
		if param.Items == "" {
			param.kind = TypeString
		}
	}
	switch {
	case param.Items != "" && !param.array:
		p.complain(path+".items", "items %s belongs to type array, but the type is %s: remove one", shown(param.Items), param.Type)
	case param.array && !slices.Contains(scalarTypes, param.kind):
		p.complain(path+".items", "%s is not a type of items: want one of %s", shown(param.Items), strings.Join(scalarTypes, ", "))
		param.kind = TypeString
	}
}

func (p *plan) checkPattern(path string, param *param) {
	if param.Pattern == "" {
		return
	}
	if param.kind != TypeString {
		p.complain(path+".pattern", "pattern %s is for strings, but the type is %s: remove it", shown(param.Pattern), param.kind)
		return
	}
	expression, err := regexp.Compile(param.Pattern)
	if err != nil {
		p.complain(path+".pattern", "%s is not a regular expression (RE2): %v", shown(param.Pattern), err)
		return
	}
	param.pattern = expression
}

func (p *plan) checkBounds(path string, param *param) {
	check := func(key string, bound *float64) {
		switch {
		case bound == nil:
		case !param.numeric():
			p.complain(path+"."+key, "%s %v is for numbers, but the type is %s: remove it", key, *bound, param.kind)
		case math.IsNaN(*bound) || math.IsInf(*bound, 0):
			p.complain(path+"."+key, "%s %v is not a number: remove it", key, *bound)
		}
	}
	check("min", param.Min)
	check("max", param.Max)
	if param.Min != nil && param.Max != nil && *param.Min > *param.Max {
		p.complain(path+".min", "min %v is above max %v", *param.Min, *param.Max)
	}
}

// checkEnum tries the values by all other rules, so that none can be useless.
func (p *plan) checkEnum(path string, param *param) {
	for i, value := range param.Enum {
		bare := *param
		bare.Enum = nil
		if _, err := bare.scalar(value); err != nil {
			p.complain(fmt.Sprintf("%s.enum[%d]", path, i), "%s: the value %v%s", shown(string(value)), err, param.retyped(value))
		}
	}
}

func (p *plan) checkDefault(path string, param *param) {
	param.required = param.Default == nil && (param.array || param.kind != TypeBoolean)
	if param.Name == p.spec.TimeoutArgument { // the model need not ask
		param.required = false
	}
	if param.Required != nil {
		param.required = *param.Required
	}
	if param.Default == nil {
		return
	}
	if param.required {
		p.complain(path+".required", "a required parameter has no use for its default %s: remove one", shown(string(param.Default)))
	}
	if _, err := param.texts(param.Default); err != nil {
		p.complain(path+".default", "%s: the value %v%s", shown(string(param.Default)), err, param.retyped(param.Default))
	}
}

// retyped is the remedy for a value of another type than the parameter's.
func (p *param) retyped(value json.RawMessage) string {
	key, items := "type", []json.RawMessage{value}
	if p.array {
		key = "items"
		if json.Unmarshal(value, &items) != nil {
			return fmt.Sprintf(": write it as a list, [%s]", value)
		}
	}
	for _, item := range items {
		kind := typeOf(item)
		switch {
		case kind == "" || kind == p.kind || kind == TypeInteger && p.kind == TypeNumber:
		case p.kind == TypeString:
			return fmt.Sprintf(": quote it, or declare %s: %s", key, kind)
		case kind == TypeString:
			return fmt.Sprintf(": take its quotes off, or declare %s: %s", key, kind)
		default:
			return fmt.Sprintf(": declare %s: %s", key, kind)
		}
	}
	return ""
}

// typeOf returns the type of a JSON scalar, or "".
func typeOf(value json.RawMessage) string {
	for _, kind := range []string{TypeString, TypeInteger, TypeNumber, TypeBoolean} {
		if _, err := textOf(kind, bytes.TrimSpace(value)); err == nil {
			return kind
		}
	}
	return ""
}

// usage is how words use a parameter that is not declared.
type usage struct{ value, each, when bool }

// infer adds the parameters that are used without being declared.
func (p *plan) infer() {
	var names []string
	uses := map[string]*usage{}
	use := func(name string) *usage {
		if uses[name] == nil {
			uses[name] = &usage{}
			names = append(names, name)
		}
		return uses[name]
	}
	for _, w := range p.words {
		if w.when != "" {
			use(w.when).when = true
		}
		for _, piece := range w.pieces {
			if piece.name != "" {
				use(piece.name).value = true
				uses[piece.name].each = uses[piece.name].each || piece.each
			}
		}
	}
	if p.stdin != "" {
		use(p.stdin).value = true
	}
	inWords := func(name string) bool {
		return slices.ContainsFunc(p.words, func(w word) bool { return slices.Contains(w.names(), name) })
	}
	for _, name := range names {
		if p.params[name] == nil {
			p.add(p.newParam("params."+name, p.inferred(name, *uses[name])))
		}
		p.params[name].used = true
		p.params[name].piped = name == p.stdin && !inWords(name)
	}
}

func (p *plan) inferred(name string, use usage) Param {
	param := Param{Name: name, Type: TypeString}
	switch {
	case name == p.spec.TimeoutArgument:
		param.Type = TypeInteger
	case use.each:
		param.Type = TypeArray
	case !use.value:
		param.Type = TypeBoolean
	}
	if use.when {
		param.Required = new(bool)
	}
	return param
}

// arguments reads the arguments object, defaults filled in.
func (p *plan) arguments(raw json.RawMessage) (values, error) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil || given == nil {
			return nil, &ArgumentError{Reason: "the arguments are not a JSON object"}
		}
	}
	for name := range given {
		if p.params[name] == nil && name != p.spec.TimeoutArgument {
			return nil, &ArgumentError{name, "is not a parameter of this tool: " + p.known()}
		}
	}
	found := values{}
	for _, param := range p.order {
		raw, ok := given[param.Name]
		switch {
		case !ok && param.required:
			return nil, &ArgumentError{param.Name, "is missing: it is required"}
		case !ok && param.Default == nil:
			continue
		case !ok:
			raw = param.Default
		}
		texts, err := param.texts(raw)
		if err != nil {
			return nil, &ArgumentError{param.Name, err.Error()}
		}
		found[param.Name] = texts
	}
	return found, nil
}

func (p *plan) known() string {
	var names []string
	for _, param := range p.order {
		names = append(names, param.Name)
	}
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}
