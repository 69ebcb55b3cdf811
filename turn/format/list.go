package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// listKeys are those of a call in a list; _meta is meta by its name in MCP.
var listKeys = []string{"id", "tool", "arguments", "meta", "_meta"}

// ReadList reads a JSON list of calls: objects with the keys id, tool, arguments
// and meta (or _meta), within the limits of a response. Missing or null arguments
// mean {}. A call without an id gets its number from 1, or something longer if
// another call has that id. A fault of one call is its Problem, and so is an
// unknown key.
func ReadList(raw []byte) ([]Call, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("the list is not UTF-8")
	}
	return readBounded(raw, readList)
}

func readList(raw json.RawMessage) ([]Call, error) {
	items, ok := list(raw)
	if !ok {
		return nil, errors.New(`want a JSON list of {"id","tool","arguments"}`)
	}
	calls := make([]Call, 0, len(items))
	for i, item := range items {
		c, err := listed(item)
		if err != nil {
			return nil, fmt.Errorf("call %d %w", i+1, err)
		}
		calls = append(calls, c)
	}
	nameCalls(calls)
	return calls, nil
}

// nameCalls gives an id to each call that has none.
func nameCalls(calls []Call) {
	taken := make(map[string]bool, len(calls))
	for _, c := range calls {
		taken[c.ID] = true
	}
	for i := range calls {
		if calls[i].ID != "" {
			continue
		}
		id := strconv.Itoa(i + 1)
		for taken[id] {
			id = "call-" + id
		}
		calls[i].ID, taken[id] = id, true
	}
}

// listed reads one call. An error says why it could not be answered.
func listed(raw json.RawMessage) (c Call, err error) {
	fields, keys, err := keysOf(raw)
	if err != nil {
		return c, errors.New(`is not a JSON object: want {"id","tool","arguments"}`)
	}
	if id, given := fields["id"]; given && !absent(id) {
		var ok bool
		if c.ID, ok = textOf(id); !ok {
			return c, errors.New("has an id that is not text: put it in quotes, or leave it out")
		}
	}
	c.Tool = fields.text("tool")
	c.takeObject(fields["arguments"])
	c.takeMeta("meta", fields["meta"])
	c.takeMeta("_meta", fields["_meta"])
	if problem := wrongKeys(keys); problem != "" {
		c.refuse(problem)
	}
	return c, nil
}

// wrongKeys says what is wrong with the keys of a call; empty is nothing.
func wrongKeys(keys []string) string {
	for i, key := range keys {
		switch {
		case !slices.Contains(listKeys, key):
			return fmt.Sprintf("it has the unknown key %q; a call has the keys %s", shorten(key), strings.Join(listKeys, ", "))
		case slices.Contains(keys[:i], key):
			return fmt.Sprintf("it has the key %q twice", key)
		}
	}
	if slices.Contains(keys, "meta") && slices.Contains(keys, "_meta") {
		return "it has both meta and _meta, which mean the same"
	}
	return ""
}

// keysOf reads compact JSON as parseObject does, and gives the keys as they are
// written.
func keysOf(raw json.RawMessage) (o object, keys []string, err error) {
	if o, err = parseObject(raw); err != nil {
		return nil, nil, err
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	_, err = in.Token()
	for err == nil && in.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = in.Token(); err == nil {
			err = in.Decode(&value)
		}
		keys = append(keys, fmt.Sprint(key))
	}
	return o, keys, err
}
