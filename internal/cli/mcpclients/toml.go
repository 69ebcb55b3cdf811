package mcpclients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// setTOML changes as little of the text as it can: it adds a table at the end, or
// changes the keys of the one that is there. What it has made is read again, and must
// differ in these keys alone.
func (c Client) setTOML(text []byte, name string, e Entry) ([]byte, error) {
	key := c.key
	was, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	want, err := readTOML(text) // a second copy
	if err != nil {
		return nil, err
	}
	servers, ok := tableIn(want, key)
	if !ok {
		return nil, wrongKey(key, "a table")
	}
	entry, ok := tableIn(servers, name)
	if !ok {
		return nil, wrongKey(key+"."+name, "a table")
	}
	maps.DeleteFunc(entry, contradicts)
	taken := func(member string) bool { _, stays := entry[member]; return !stays }
	bare := without(text, []string{key, name}, taken)
	entry["command"], entry["args"] = e.Command, anyOf(e.Args)
	if reflect.DeepEqual(was, want) {
		return text, nil
	}
	out := edited(bare, key, name, e)
	got, err := readTOML(out)
	if inline(text, key) {
		return nil, fmt.Errorf("%s is an inline table, which is not edited: write each server as a table [%s.NAME]", key, key)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		return nil, fmt.Errorf("%s.%s is written in a form that is not edited: write it as a table [%s.%s], or remove it", key, name, key, name)
	}
	return out, nil
}

func anyOf(list []string) []any {
	out := []any{}
	for _, one := range list {
		out = append(out, one)
	}
	return out
}

func readTOML(text []byte) (map[string]any, error) {
	into := map[string]any{}
	if err := toml.Unmarshal(text, &into); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := at.Position()
			return nil, fmt.Errorf("it is not TOML: line %d, column %d: %w", line, column, err)
		}
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	return into, nil
}

// tableIn is a table in another, made if it is missing.
func tableIn(in map[string]any, key string) (map[string]any, bool) {
	if in[key] == nil {
		in[key] = map[string]any{}
	}
	table, ok := in[key].(map[string]any)
	return table, ok
}

// statement is a header or a key with its value, from its first byte to the end
// of its line, comment included.
type statement struct {
	path       []string
	table      bool
	begin, end int
}

// statements are those of a text that can be read, in order.
func statements(text []byte) (list []statement) {
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		s := statement{table: e.Kind == unstable.Table || e.Kind == unstable.ArrayTable, begin: -1}
		for it := e.Key(); it.Next(); {
			part := it.Node()
			s.path = append(s.path, string(part.Data))
			if s.begin < 0 {
				s.begin = int(part.Raw.Offset)
			}
		}
		if s.table {
			s.begin = bytes.LastIndexByte(text[:s.begin], '\n') + 1
		}
		list = append(list, s)
	}
	for n := range list {
		list[n].end = endOf(text, list[n].begin)
	}
	return list
}

// inline says whether the text has the table of this name as a value, to which TOML lets
// nothing be added.
func inline(text []byte, key string) bool {
	for _, s := range statements(text) {
		if s.table || slices.Equal(s.path, []string{key}) {
			return !s.table
		}
	}
	return false
}

// endOf is where the statement ends that begins here: at the first end of a line up to
// which the text can be read by itself.
func endOf(text []byte, begin int) int {
	for end := begin; end < len(text); {
		n := bytes.IndexByte(text[end:], '\n')
		if n < 0 {
			return len(text)
		}
		end += n
		if one := bytes.TrimSuffix(text[begin:end], []byte("\r")); toml.Unmarshal(one, &map[string]any{}) == nil {
			return begin + len(one)
		}
		end++
	}
	return len(text)
}

// without is the text without those members of the table that are taken out, be they
// keys or tables.
func without(text []byte, table []string, taken func(member string) bool) []byte {
	var in []string // the table of what follows
	out, kept := []byte(nil), 0
	for _, s := range statements(text) {
		path := s.path
		if s.table {
			in = s.path
		} else {
			path = slices.Concat(in, s.path)
		}
		if n := len(table); len(path) <= n || !slices.Equal(path[:n], table) || !taken(path[n]) {
			continue
		}
		begin, end := bytes.LastIndexByte(text[:s.begin], '\n')+1, len(text)
		if n := bytes.IndexByte(text[s.end:], '\n'); n >= 0 {
			end = s.end + n + 1
		}
		out, kept = append(out, text[kept:begin]...), end
	}
	return append(out, text[kept:]...)
}

// edited is the text with the entry's keys, in its table or in one at the end.
func edited(text []byte, key, name string, e Entry) []byte {
	n := newline(text)
	lines := [][2]string{{"command", tomlText(e.Command)}, {"args", tomlList(e.Args)}}
	inside, behind := false, -1
	keys := map[string]statement{}
	for _, s := range statements(text) {
		switch {
		case s.table:
			inside = reflect.DeepEqual(s.path, []string{key, name})
		case inside && len(s.path) == 1:
			keys[s.path[0]] = s
		}
		if inside && (s.table || behind < s.end) {
			behind = s.end
		}
	}
	if behind < 0 {
		return appended(text, n, fmt.Sprintf("[%s.%s]", key, tomlKey(name)), lines)
	}
	return replaced(text, n, keys, behind, lines)
}

func appended(text []byte, n, header string, lines [][2]string) []byte {
	out := bytes.Clone(text)
	if len(out) > 0 {
		if !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, n...)
		}
		out = append(out, n...)
	}
	out = append(out, header+n...)
	for _, l := range lines {
		out = append(out, l[0]+" = "+l[1]+n...)
	}
	return out
}

// replaced changes the lines of keys, from the last to the first, and adds those that
// are missing behind the others.
func replaced(text []byte, n string, keys map[string]statement, behind int, lines [][2]string) []byte {
	out := bytes.Clone(text)
	put := func(begin, end int, with string) {
		out = append(append(bytes.Clone(out[:begin]), with...), out[end:]...)
	}
	missing := ""
	for _, l := range lines {
		if _, there := keys[l[0]]; !there {
			missing += n + l[0] + " = " + l[1]
		}
	}
	put(behind, behind, missing)
	if keys["command"].begin < keys["args"].begin { // the last one first
		lines = [][2]string{lines[1], lines[0]}
	}
	for _, l := range lines {
		if s, there := keys[l[0]]; there {
			put(s.begin, s.end, l[0]+" = "+l[1]+commentOf(out[s.begin:s.end]))
		}
	}
	return out
}

// commentOf is the one behind a statement, with the space before it.
func commentOf(line []byte) string {
	var whole map[string]any
	_ = toml.Unmarshal(line, &whole)
	last := bytes.LastIndexByte(line, '\n') + 1
	for at := last; at < len(line); at++ {
		var part map[string]any
		if line[at] == '#' && toml.Unmarshal(line[:at], &part) == nil && reflect.DeepEqual(whole, part) {
			code := bytes.TrimRight(line[:at], " \t")
			return string(line[len(code):])
		}
	}
	return ""
}

func tomlText(s string) string {
	raw, err := toml.Marshal(map[string]string{"x": s})
	if err != nil {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(raw), "x = "))
}

func tomlList(list []string) string {
	var items []string
	for _, one := range list {
		items = append(items, tomlText(one))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func tomlKey(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return s
	}
	return tomlText(s)
}

// jsonOfTOML is the part of this key.
func jsonOfTOML(text []byte, key string) ([]byte, error) {
	all, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	servers, ok := all[key]
	if !ok {
		return nil, noServers(key)
	}
	return json.Marshal(map[string]any{key: servers})
}

func shownTOML(key, name string, entry json.RawMessage) []byte {
	var members any
	if json.Unmarshal(entry, &members) != nil {
		return nil
	}
	out, _ := toml.Marshal(map[string]any{key: map[string]any{name: members}})
	return bytes.TrimPrefix(out, fmt.Appendf(nil, "[%s]\n", key)) // which has no keys of its own
}
