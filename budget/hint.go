package budget

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/internal/text"
)

const (
	// MetaKey is the member of a call's _meta that asks for a timeout, in
	// milliseconds.
	MetaKey = "dev.toolhost/timeoutMs"

	// SoftMetaKey is the member of a call's _meta that asks for a soft budget, in
	// milliseconds. Hosts set it; [SoftHint] reads it.
	SoftMetaKey = "dev.toolhost/softBudgetMs"

	// The names that these two had before, read for one release.
	oldMetaKey, oldSoftMetaKey = "toolhost.dev/timeoutMs", "toolhost.dev/softBudgetMs"

	bareMetaKey = "timeout" // the same, as some models and clients write it
	metaMember  = "_meta"
)

// ModelHint is the timeout that a model asks for in one call.
type ModelHint struct {
	// Found is set if there is a readable hint. It may still be out of bounds.
	Found bool
	// Timeout is its value, or LongestDuration if that is too large for a
	// time.Duration.
	Timeout time.Duration
	// Detail says where it was: "argument timeout_ms", "_meta dev.toolhost/timeoutMs".
	Detail string
	// Meta is the _meta object removed from the arguments, or nil.
	Meta json.RawMessage
	// Warnings has a line for each hint that was not used, for the model.
	Warnings []string
}

// Asks returns the hint for [Resolve]: one Ask of the call layer, or none.
func (h ModelHint) Asks() []Ask {
	if !h.Found {
		return nil
	}
	return []Ask{{Layer: LayerCall, Timeout: h.Timeout, Detail: h.Detail}}
}

// Hint finds the timeout that a model asks for, in whole milliseconds: in the
// argument that the tool declared as its timeout (declaredArg; "" for none), or in
// _meta under [MetaKey] or plain "timeout". meta is the _meta besides the arguments;
// models put one inside of them as well. The first readable value in this order is
// the hint: argument, MetaKey in meta, MetaKey inside, the same with the key's old name,
// "timeout" in meta, "timeout" inside. null is not a hint. A value that is not a whole
// number, or that differs from the hint, is ignored with a warning.
//
// rest is the arguments to validate and send: without a _meta object, and otherwise
// unchanged, including the declared argument. Of repeated keys the last is read;
// repeated _meta objects are all removed, other repeated keys stay.
//
// The error says that arguments or meta is not a JSON object; rest is then arguments.
// Missing and null ones count as empty.
func Hint(arguments, meta json.RawMessage, declaredArg string) (hint ModelHint, rest json.RawMessage, err error) {
	args, err := members(arguments)
	if err != nil {
		return ModelHint{}, arguments, fmt.Errorf("cannot read arguments: %w", err)
	}
	beside, err := members(meta)
	if err != nil {
		return ModelHint{}, arguments, fmt.Errorf("cannot read _meta: %w", err)
	}
	args, hint.Meta = takeMeta(args)
	inside, err := members(hint.Meta)
	if err != nil {
		return ModelHint{}, arguments, fmt.Errorf("cannot read _meta in arguments: %w", err)
	}
	hint.read(candidates(args, beside, inside, declaredArg))
	if hint.Meta == nil {
		return hint, arguments, nil
	}
	return hint, join(args), nil
}

// SoftHint finds the soft budget that a host asks for in the _meta besides the arguments,
// under [SoftMetaKey], in whole milliseconds as for [Hint]: one Ask, or none. null and 0
// ask for none. A value that is negative or not a number is ignored with a warning. A meta
// that is not a JSON object is ignored: Hint refuses it.
func SoftHint(meta json.RawMessage) (asks []Ask, warnings []string) {
	list, err := members(meta)
	key := SoftMetaKey
	value, ok := last(list, key)
	if !ok {
		key = oldSoftMetaKey
		value, ok = last(list, key)
	}
	if err != nil || !ok || string(value) == "null" {
		return nil, nil
	}
	detail := metaMember + " " + key
	soft, ok := milliseconds(value)
	switch {
	case !ok || soft < 0:
		return nil, []string{fmt.Sprintf("soft budget %s in %s is not used: want a whole number of milliseconds", shown(value), detail)}
	case soft == 0:
		return nil, nil
	}
	return []Ask{{Layer: LayerCall, TimeoutUnset: true, Soft: soft, Detail: detail}}, nil
}

// takeMeta takes _meta objects out. A _meta that is not an object is an argument, for
// the tool's schema to judge.
func takeMeta(args []member) (kept []member, meta json.RawMessage) {
	isMeta := func(m member) bool { return m.key == metaMember && isObject(m.value) }
	for _, m := range slices.Backward(args) {
		if isMeta(m) {
			return slices.DeleteFunc(args, isMeta), m.value
		}
	}
	return args, nil
}

type candidate struct {
	value  json.RawMessage
	detail string
}

// candidates lists what might be the hint, the one that counts most in front.
func candidates(args, beside, inside []member, declaredArg string) []candidate {
	var list []candidate
	look := func(in []member, key, detail string) {
		if value, ok := last(in, key); ok && string(value) != "null" {
			list = append(list, candidate{value, detail})
		}
	}
	if declaredArg != "" {
		look(args, declaredArg, oneLine("argument "+declaredArg))
	}
	for _, key := range []string{MetaKey, oldMetaKey, bareMetaKey} {
		look(beside, key, metaMember+" "+key)
		look(inside, key, metaMember+" "+key+" in the arguments")
	}
	return list
}

// read takes the first readable candidate and warns of the ones that it overrules.
func (h *ModelHint) read(list []candidate) {
	var w warnings
	for _, c := range list {
		timeout, ok := milliseconds(c.value)
		switch {
		case !ok:
			w.addf("timeout %s in %s is not used: %s", shown(c.value), c.detail, wanted(c.value))
		case !h.Found:
			h.Found, h.Timeout, h.Detail = true, timeout, c.detail
		case timeout != h.Timeout:
			w.addf("timeout %s in %s is not used: %s asks for %s", Format(timeout), c.detail, h.Detail, Format(h.Timeout))
		}
	}
	h.Warnings = w
}

// wanted says what to write in place of a timeout that cannot be read.
func wanted(value json.RawMessage) string {
	var word string
	switch _ = json.Unmarshal(value, &word); { // no word if it is not text
	case MeansInfinite(word):
		return "only a tool's entry in the operator's config may lift it; want a whole number of milliseconds"
	case MeansNoLimit(word):
		return "leave it out for the default, or give a whole number of milliseconds"
	}
	return "want a whole number of milliseconds"
}

// longestHint keeps huge numbers apart from the marker Infinite.
const longestHint = Infinite / time.Hour * time.Hour

// milliseconds reads a JSON number without a fraction; 3e4 and 30000.0 have none.
// Whatever fits a time.Duration is exact as a float64.
func milliseconds(value json.RawMessage) (time.Duration, bool) {
	if !isNumber(value) {
		return 0, false
	}
	// The only error left is a number out of range, which comes with an infinity.
	ms, _ := strconv.ParseFloat(string(value), 64)
	limit := float64(longestHint / time.Millisecond)
	switch {
	case ms != math.Trunc(ms):
		return 0, false
	case ms >= limit:
		return longestHint, true
	case ms <= -limit:
		return -longestHint, true
	}
	return time.Duration(ms) * time.Millisecond, true
}

// isNumber tells valid JSON numbers from other valid JSON.
func isNumber(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// shown is a value for a warning, which is bounded itself.
func shown(value json.RawMessage) string { return text.Cut(string(value), 61) }
