package wirejson

import (
	"encoding/json"
	"math"
	"strconv"
	"unsafe"
)

// Outline is the value of JSON that has been checked as encoding/json makes it of
// an any, down to so many levels of objects and arrays; those below are empty, and
// numbers beyond a float64 are the largest there is. It is for checking the form
// of what holds large values of others' concern. Its strings are in raw's memory: it must
// not be used once raw changes.
func Outline(raw []byte, levels int) any {
	o := outliner{scanner{raw: raw}}
	return o.value(levels)
}

type outliner struct{ scanner }

func (o *outliner) value(levels int) any {
	c, _ := o.peek()
	switch c {
	case '{', '[':
		if levels == 0 {
			return o.skip(c)
		}
		if o.at++; c == '{' {
			return o.members(levels - 1)
		}
		return o.elements(levels - 1)
	case '"':
		return o.string()
	case 't', 'n':
		o.at += len("true")
		return map[byte]any{'t': true, 'n': nil}[c]
	case 'f':
		o.at += len("false")
		return false
	}
	from := o.at
	_ = o.number()
	n, _ := strconv.ParseFloat(string(o.raw[from:o.at]), 64) // beyond its range an infinity
	return min(max(n, -math.MaxFloat64), math.MaxFloat64)
}

func (o *outliner) members(levels int) any {
	members := map[string]any{}
	for !o.ends('}') {
		name := o.string()
		_, _ = o.peek()
		o.at++ // the colon
		members[name] = o.value(levels)
	}
	return members
}

func (o *outliner) elements(levels int) any {
	elements := []any{}
	for !o.ends(']') {
		elements = append(elements, o.value(levels))
	}
	return elements
}

// ends reads up to the next member or element, or the end.
func (o *outliner) ends(bracket byte) bool {
	c, _ := o.peek()
	if c == ',' {
		o.at++
		c, _ = o.peek()
	}
	if c == bracket {
		o.at++
		return true
	}
	return false
}

func (o *outliner) string() (text string) {
	from := o.at
	plain, _ := o.text()
	if plain {
		return unsafe.String(&o.raw[from+1], o.at-1-(from+1))
	}
	_ = json.Unmarshal(o.raw[from:o.at], &text)
	return text
}

// skip reads an object or array and returns its kind.
func (o *outliner) skip(bracket byte) any {
	depth := 0
	for {
		switch o.raw[o.at] {
		case '"':
			_, _ = o.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		o.at++
		if depth > 0 {
			continue
		}
		if bracket == '{' {
			return map[string]any{}
		}
		return []any{}
	}
}
