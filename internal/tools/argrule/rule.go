package argrule

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/strictjson"
	"github.com/toolhost/toolhost/plugin/wirejson"
	"github.com/toolhost/toolhost/turn"
)

// Rule has a mode for the calls in which an argument matches. The first of its
// patterns that matches decides; a list of nothing but what must not be holds
// for all else, and for a call without the argument.
type Rule struct {
	// Mode is turn.ModeAsk or turn.ModeDeny.
	Mode     turn.Mode
	Argument string
	Patterns []Pattern
}

// String is the rule as the configuration has it.
func (r Rule) String() string {
	var list []string
	for _, p := range r.Patterns {
		list = append(list, `"`+p.text+`"`)
	}
	text := strings.Join(list, ", ")
	if len(list) != 1 {
		text = "[" + text + "]"
	}
	return string(r.Mode) + ": {" + r.Argument + ": " + text + "}"
}

// Tool is what must be known of one to read its arguments.
type Tool struct {
	// Dirs are where a relative path can begin.
	Dirs []string
	// Defaults are what its schema has for arguments that are left out.
	Defaults map[string]json.RawMessage
}

// List are the rules of one tool.
type List []Rule

// Judge gives the mode of the first rule that holds for a call, and the rule;
// those that deny come first.
func (l List) Judge(arguments json.RawMessage, of Tool) (mode turn.Mode, rule string) {
	values := readTexts(arguments, of.Defaults)
	for _, m := range []turn.Mode{turn.ModeDeny, turn.ModeAsk} {
		for _, r := range l {
			if r.Mode == m && r.holds(values, of.Dirs) {
				return m, r.String()
			}
		}
	}
	return "", ""
}

func (r Rule) holds(v values, dirs []string) bool {
	if v.unclear {
		return true
	}
	inverse := !slices.ContainsFunc(r.Patterns, func(p Pattern) bool { return !p.not })
	list, there := v.of(r.Argument)
	if !there && inverse || len(list) > maxTexts {
		return true
	}
	return slices.ContainsFunc(list, func(readings []string) bool {
		return len(readings) == 0 || r.holdsFor(readings, inverse, dirs)
	})
}

// holdsFor judges one text by all its readings. Where it is not sure, the rule holds.
func (r Rule) holdsFor(readings []string, inverse bool, dirs []string) bool {
	for _, p := range r.Patterns {
		surely, possibly := true, false
		for _, text := range readings {
			yes, perhaps := p.match(text, dirs)
			surely, possibly = surely && yes, possibly || perhaps
		}
		switch {
		case p.not && surely:
			return false
		case !p.not && possibly:
			return true
		}
	}
	return inverse
}

// Arguments are the names that rules look at.
func (l List) Arguments() (names []string) {
	for _, r := range l {
		if !slices.Contains(names, r.Argument) {
			names = append(names, r.Argument)
		}
	}
	return names
}

// maxTexts bounds the texts of an argument that are compared: for one with more
// a rule holds.
const maxTexts = 1000

// values are a call's arguments; unclear are those that cannot be read in one
// way only.
type values struct {
	byName   map[string]any
	defaults map[string]json.RawMessage
	unclear  bool
}

func readTexts(arguments json.RawMessage, defaults map[string]json.RawMessage) (v values) {
	v.defaults = defaults
	if len(strings.TrimSpace(string(arguments))) == 0 {
		return v
	}
	v.unclear = strictjson.Object(arguments) != nil || unmarshal(arguments, &v.byName) != nil
	return v
}

// unmarshal keeps numbers as they are written.
func unmarshal(raw json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(to)
}

// of are all texts in an argument, however it is spelled, as some tools don't
// care; where it is left out, those of its default. there says that it is there as it is written, with a text in it.
func (v values) of(argument string) (list [][]string, there bool) {
	for name, value := range v.byName {
		if strings.EqualFold(name, argument) {
			before := len(list)
			list = texts(list, value)
			there = there || name == argument && len(list) > before
		}
	}
	if value := any(nil); !there && unmarshal(v.defaults[argument], &value) == nil {
		list = texts(list, value)
	}
	return list, there
}

// texts adds those in a value, each with its readings, up to one more than are compared.
func texts(list [][]string, value any) [][]string {
	if len(list) > maxTexts {
		return list
	}
	switch v := value.(type) {
	case nil:
	case string:
		list = append(list, []string{v})
	case json.Number:
		list = append(list, readings(v))
	case []any:
		for _, one := range v {
			list = texts(list, one)
		}
	case map[string]any:
		for _, one := range v {
			list = texts(list, one)
		}
	default:
		raw, _ := json.Marshal(v)
		list = append(list, []string{string(raw)})
	}
	return list
}

// maxExact is the largest whole number up to which float64 has them all (RFC 8259, section 6).
const maxExact = 1 << 53

// readings are what a number is to tools: what float64 makes of it, and a large one with all
// its digits; nil if it is too large or too long.
func readings(n json.Number) (list []string) {
	f, err := n.Float64()
	if err != nil || len(n) > wirejson.MaxNumberBytes {
		return nil
	}
	raw, _ := json.Marshal(f)
	list = []string{string(raw)}
	if math.Abs(f) < maxExact {
		return list
	}
	if exact, ok := new(big.Rat).SetString(n.String()); ok && exact.IsInt() {
		list = append(list, exact.Num().String())
	}
	return list
}
