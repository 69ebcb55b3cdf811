package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// imported is a server as Claude Desktop, VS Code and others write it.
type imported struct {
	Command, Cwd, URL, EnvFile string
	Args, Env                  []string // of env the names alone: no value is taken
	Disabled                   bool
	// Wrong is why it cannot be read.
	Wrong string
	// Unused are keys that nothing is made of, Twice those that stand twice; Doubled:
	// so does the server itself.
	Unused, Twice []string
	Doubled       bool
}

// importedServers reads the file, by the names of the servers; those of projects are not
// taken. Of what stands twice the last counts, as to JSON.
func importedServers(raw []byte) (servers map[string]imported, projects map[string][]string, err error) {
	if raw, err = plainJSON(raw); err != nil {
		return nil, nil, fmt.Errorf("cannot import: this is not JSON of MCP servers: %w", err)
	}
	if !json.Valid(raw) {
		return nil, nil, fmt.Errorf("cannot import: this is not JSON of MCP servers: %w", jsonMistake(raw))
	}
	file, ok := members(raw)
	if !ok {
		return nil, nil, errors.New(`cannot import: this is not JSON of MCP servers: want {"mcpServers": {...}}`)
	}
	projects = projectServers(file["projects"])
	if mcp, ok := members(file["mcp"]); ok && file["mcpServers"] == nil && file["servers"] == nil {
		file, raw = mcp, file["mcp"]
	}
	if file["mcpServers"] != nil && file["servers"] != nil {
		return nil, nil, errors.New(`cannot import: there are "mcpServers" and "servers" in it: leave only one of them`)
	}
	for _, key := range []string{"mcpServers", "servers", "context_servers"} {
		if file[key] == nil {
			continue
		}
		if slices.Contains(repeated(raw), key) {
			return nil, nil, fmt.Errorf(`cannot import: %q stands twice: put both together`, key)
		}
		entries, ok := members(file[key])
		if !ok {
			return nil, nil, fmt.Errorf(`cannot import: %q must be an object of servers by their names, such as {"files": {"command": "..."}}`, key)
		}
		return readServers(entries, repeated(file[key])), projects, nil
	}
	if len(projects) > 0 {
		return nil, projects, nil
	}
	return nil, nil, errors.New(`cannot import: there is neither "mcpServers" nor "servers" nor "context_servers" in it`)
}

// projectServers are the names of the servers that Claude Code keeps of projects, by
// the projects' folders.
func projectServers(raw json.RawMessage) map[string][]string {
	names := map[string][]string{}
	folders, _ := members(raw)
	for folder, project := range folders {
		fields, _ := members(project)
		if servers, _ := members(fields["mcpServers"]); len(servers) > 0 {
			names[folder] = sortedKeys(servers)
		}
	}
	return names
}

func readServers(entries map[string]json.RawMessage, doubled []string) map[string]imported {
	servers := map[string]imported{}
	for name, entry := range entries {
		var server imported
		if fields, ok := members(entry); !ok {
			server.Wrong = `it must be an object, such as {"command": "node", "args": ["server.js"]}`
		} else if s, err := readServer(zedsOlder(fields)); err != nil {
			server.Wrong = err.Error()
		} else {
			server = s
		}
		server.Twice, server.Doubled = repeated(entry), slices.Contains(doubled, name)
		servers[name] = server
	}
	return servers
}

// zedsOlder are the fields of a server whose command is an object with the path, the
// args and the env, as in Zed's older settings.
func zedsOlder(fields map[string]json.RawMessage) map[string]json.RawMessage {
	command, ok := members(fields["command"])
	if !ok || command["path"] == nil {
		return fields
	}
	fields = maps.Clone(fields)
	maps.Copy(fields, command)
	fields["command"] = command["path"]
	delete(fields, "path")
	return fields
}

func readServer(fields map[string]json.RawMessage) (s imported, err error) {
	for key, into := range map[string]*string{"command": &s.Command, "cwd": &s.Cwd, "url": &s.URL, "envFile": &s.EnvFile} {
		if fields[key] != nil && json.Unmarshal(fields[key], into) != nil {
			return s, fmt.Errorf("%q must be a text", key)
		}
	}
	enabled := true
	for key, into := range map[string]*bool{"disabled": &s.Disabled, "enabled": &enabled} {
		if fields[key] != nil && json.Unmarshal(fields[key], into) != nil {
			return s, fmt.Errorf("%q must be true or false", key)
		}
	}
	s.Disabled = s.Disabled || !enabled
	if s.Args, err = readArgs(fields["args"]); err != nil {
		return s, err
	}
	env, ok := members(fields["env"])
	if fields["env"] != nil && !ok {
		return s, errors.New(`"env" must be an object of variables by their names`)
	}
	s.Env = sortedKeys(env)
	for _, key := range sortedKeys(fields) {
		if !slices.Contains([]string{"command", "args", "env", "cwd", "url", "envFile", "disabled", "enabled", "type"}, key) {
			s.Unused = append(s.Unused, key)
		}
	}
	return s, nil
}

// repeated are the names that stand more than once in a JSON object.
func repeated(raw json.RawMessage) (twice []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return twice
		}
		key, _ := name.(string)
		if seen[key] && !slices.Contains(twice, key) {
			twice = append(twice, key)
		}
		seen[key] = true
	}
	return twice
}

func readArgs(raw json.RawMessage) (args []string, err error) {
	wrong := errors.New(`"args" must be a list of texts`)
	var items []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &items) != nil {
		return nil, wrong
	}
	for _, item := range items {
		word := string(item) // a number, true and false are taken as they are written
		switch item[0] {
		case '"':
			if json.Unmarshal(item, &word) != nil {
				return nil, wrong
			}
		case '{', '[', 'n':
			return nil, wrong
		}
		args = append(args, word)
	}
	return args, nil
}

// members are those of a JSON object; null has none.
func members(raw json.RawMessage) (fields map[string]json.RawMessage, ok bool) {
	return fields, raw != nil && json.Unmarshal(raw, &fields) == nil
}

// jsonMistake names the line of a mistake.
func jsonMistake(raw []byte) error {
	var v any
	err := json.Unmarshal(raw, &v)
	if mistake, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(raw[:min(int(mistake.Offset), len(raw))], []byte("\n")), err)
	}
	return err
}

// plainJSON blanks what VS Code lets people write into JSON beyond JSON: a byte
// order mark, comments, and a comma behind the last item. Lines stay where they
// are.
func plainJSON(raw []byte) ([]byte, error) {
	out := bytes.TrimPrefix(bytes.Clone(raw), []byte("\ufeff"))
	comma := -1 // one with nothing but space behind it so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			i = stringEnd(out, i)
		case c == '/':
			end, closed := commentEnd(out, i)
			if !closed {
				return nil, errors.New("a comment has no end: close it with */")
			}
			blank(out[i:end])
			i = max(i, end-1)
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			blank(out[comma : comma+1])
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out, nil
}

// stringEnd is the index of the quote that ends the string which begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// commentEnd is where the comment at i ends, or i without a comment.
func commentEnd(text []byte, i int) (end int, closed bool) {
	rest := text[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + n, true
		}
		return len(text), true
	case bytes.HasPrefix(rest, []byte("/*")):
		n := bytes.Index(rest[2:], []byte("*/"))
		return i + n + 4, n >= 0
	}
	return i, true
}

func blank(text []byte) {
	for i := range text {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
}
