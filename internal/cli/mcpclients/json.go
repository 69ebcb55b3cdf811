package mcpclients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolhost/toolhost/internal/lazy"
)

// maxDepth bounds the nesting of what is read: hujson goes down as deep as a file does.
const maxDepth = 200

// field is a member that an entry must have.
type field struct {
	name  string
	value any
}

func (c Client) fields(e Entry) []field {
	fields := []field{{"command", e.Command}, {"args", e.Args}}
	if c.typed {
		fields = append([]field{{"type", "stdio"}}, fields...)
	}
	return fields
}

func (c Client) setJSON(text []byte, name string, e Entry) ([]byte, error) {
	whole, object, err := c.parse(text)
	if err != nil {
		return nil, err
	}
	s := style{newline: newline(text), unit: unitOf(object)}
	servers, err := s.object(object, c.key, 1)
	if err != nil {
		return nil, err
	}
	entry, err := s.object(servers, name, 2)
	if err != nil {
		return nil, err
	}
	uncontradicted(entry)
	for _, f := range c.fields(e) {
		if err := s.set(entry, f, 3); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return append(bytes.TrimSpace(whole.Pack()), s.newline...), nil
	}
	return whole.Pack(), nil
}

// parse reads a file as its client would.
func (c Client) parse(text []byte) (whole hujson.Value, object *hujson.Object, err error) {
	if whole, err = parsed(text); err != nil {
		return whole, nil, err
	}
	if !c.comments && !whole.IsStandard() {
		return whole, nil, fmt.Errorf("it has comments, or commas behind last items, which %s does not read: take them out", c.Title)
	}
	object, ok := whole.Value.(*hujson.Object)
	if !ok {
		return whole, nil, errNoObject
	}
	return whole, object, nil
}

// standard is what a file says, in plain JSON; the text stays as it is. Comments and
// commas behind last items are taken of every client.
func standard(text []byte) (hujson.Value, error) {
	whole, err := parsed(slices.Concat(text, []byte("\n"))) // a comment may end where the file does
	whole.Standardize()
	return whole, err
}

// parsed is a text, which may be empty and stands for an empty object then.
func parsed(text []byte) (whole hujson.Value, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	if deep(text) {
		return whole, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	if whole, err = hujson.Parse(text); err != nil {
		said := strings.TrimPrefix(err.Error(), "hujson: ")
		said = strings.Replace(said, "parsing comment: unexpected EOF", "a comment has no end", 1)
		return hujson.Value{}, fmt.Errorf("it is not JSON: %s", said)
	}
	return whole, nil
}

var errNoObject = errors.New("it is not a JSON object")

// unnested are strings and comments, whose brackets nest nothing.
var unnested = lazy.Regexp(`(?s)"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/`)

func deep(text []byte) bool {
	depth := 0
	for _, b := range unnested().ReplaceAll(text, nil) {
		switch b {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// style is how a file is written.
type style struct{ newline, unit string }

// unitOf is how far an object's members are indented.
func unitOf(o *hujson.Object) string {
	for _, m := range o.Members {
		if indent, ok := indentOf(m.Name.BeforeExtra); ok && indent != "" {
			return indent
		}
	}
	return "  "
}

// indentOf is what stands between the last line break and what follows.
func indentOf(extra hujson.Extra) (indent string, ok bool) {
	at := bytes.LastIndexByte(extra, '\n')
	if at < 0 {
		return "", false
	}
	indent = string(extra[at+1:])
	return indent, strings.Trim(indent, " \t") == ""
}

// member is the last one of the name, as JSON has it.
func member(o *hujson.Object, name string) *hujson.ObjectMember {
	for n := len(o.Members) - 1; n >= 0; n-- {
		if key, ok := o.Members[n].Name.Value.(hujson.Literal); ok && key.String() == name {
			return &o.Members[n]
		}
	}
	return nil
}

// object is the one of this name, made if it is missing.
func (s style) object(in *hujson.Object, name string, depth int) (*hujson.Object, error) {
	m := member(in, name)
	if m == nil {
		made := &hujson.Object{}
		s.add(in, name, made, depth)
		return made, nil
	}
	o, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return nil, wrongKey(name, "")
	}
	return o, nil
}

// set gives a member its value, unless it has it.
func (s style) set(in *hujson.Object, f field, depth int) error {
	raw, err := plain(f.value)
	if err != nil {
		return err
	}
	value, err := hujson.Parse(raw)
	if err != nil {
		return err
	}
	m := member(in, f.name)
	if m == nil {
		s.add(in, f.name, value.Value, depth)
		return nil
	}
	was := m.Value.Clone()
	was.BeforeExtra, was.AfterExtra = nil, nil
	was.Minimize()
	value.Minimize()
	if !bytes.Equal(was.Pack(), value.Pack()) {
		value, _ = hujson.Parse(raw)
		m.Value.Value = value.Value
	}
	return nil
}

// plain is a value on one line, its characters as they are.
func plain(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	raw := bytes.TrimSpace(out.Bytes())
	if list, ok := value.([]string); ok && len(list) > 1 {
		var items []string
		for _, one := range list {
			item, err := plain(one)
			if err != nil {
				return nil, err
			}
			items = append(items, string(item))
		}
		return []byte("[" + strings.Join(items, ", ") + "]"), nil
	}
	return raw, nil
}

// add puts a member behind the last one, on a line of its own and indented as those
// before it; a comment behind the last one stays there.
func (s style) add(in *hujson.Object, name string, value hujson.ValueTrimmed, depth int) {
	indent, closing := strings.Repeat(s.unit, depth), strings.Repeat(s.unit, depth-1)
	comma := hujson.Extra(nil) // behind the new one
	if n := len(in.Members); n > 0 {
		if own, ok := indentOf(in.Members[n-1].Name.BeforeExtra); ok {
			indent = own
		}
		if in.Members[n-1].Value.AfterExtra != nil {
			comma = hujson.Extra{}
		}
	}
	if own, ok := indentOf(in.AfterExtra); ok {
		closing = own
	}
	before := append(bytes.TrimRight(in.AfterExtra, " \t\r\n"), s.newline+indent...)
	if len(bytes.TrimSpace(in.AfterExtra)) == 0 {
		before = []byte(s.newline + indent)
	}
	in.Members = append(in.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value, AfterExtra: comma},
	})
	in.AfterExtra = hujson.Extra(s.newline + closing)
}

func noServers(key string) error { return fmt.Errorf("there is no %q in it", key) }
