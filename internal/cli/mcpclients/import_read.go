package mcpclients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// server is one as Claude Desktop, VS Code and others write it.
type server struct {
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

// found is where a file has its servers. Those of projects are known by name alone.
type found struct {
	key      string
	servers  hujson.Value // nothing where there are only projects
	projects map[string][]string
}

// servers are those of a client's file.
func (c Client) servers(text []byte) (f found, err error) {
	text = bytes.TrimPrefix(text, mark)
	if c.toml {
		if text, err = jsonOfTOML(text, c.key); err != nil {
			return f, err
		}
	}
	whole, err := standard(text)
	if err != nil {
		return f, err
	}
	fields, _, ok := members(whole)
	if !ok {
		return f, errNoObject
	}
	f = found{c.key, fields[c.key], projectServers(fields["projects"])}
	if f.servers.Value == nil && len(f.projects) == 0 {
		return f, noServers(c.key)
	}
	return f, nil
}

// anyServers are those of a file of JSON, whichever program it is of.
func anyServers(text []byte) (f found, err error) {
	whole, err := standard(bytes.TrimPrefix(text, mark))
	if err != nil {
		return f, err
	}
	file, twice, ok := members(whole)
	if !ok {
		return f, errors.New(`this is not JSON of MCP servers: want {"mcpServers": {...}}`)
	}
	f.projects = projectServers(file["projects"])
	has := func(key string) bool { return file[key].Value != nil }
	if mcp, again, ok := members(file["mcp"]); ok && !has("mcpServers") && !has("servers") {
		file, twice = mcp, again
	}
	if has("mcpServers") && has("servers") {
		return f, errors.New(`there are "mcpServers" and "servers" in it: leave only one of them`)
	}
	keys := jsonKeys()
	at := slices.IndexFunc(keys, has)
	switch {
	case at < 0 && len(f.projects) == 0:
		return f, fmt.Errorf(`there is neither "%s" in it`, strings.Join(keys, `" nor "`))
	case at < 0:
		return f, nil
	case slices.Contains(twice, keys[at]):
		return f, fmt.Errorf(`%q stands twice: put both together`, keys[at])
	}
	f.key, f.servers = keys[at], file[keys[at]]
	return f, nil
}

// jsonKeys are where clients' JSON has servers.
func jsonKeys() (keys []string) {
	for _, c := range clients {
		if !c.toml && !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// projectServers are the names of the servers that Claude Code keeps of projects, by
// the projects' folders.
func projectServers(projects hujson.Value) map[string][]string {
	names := map[string][]string{}
	folders, _, _ := members(projects)
	for folder, project := range folders {
		fields, _, _ := members(project)
		if servers, _, _ := members(fields["mcpServers"]); len(servers) > 0 {
			names[folder] = sortedKeys(servers)
		}
	}
	return names
}

// read reads the servers, by their names.
func (f found) read() (map[string]server, error) {
	if f.servers.Value == nil {
		return nil, nil
	}
	entries, doubled, ok := members(f.servers)
	if !ok {
		return nil, fmt.Errorf(`%q must be an object of servers by their names, such as {"files": {"command": "..."}}`, f.key)
	}
	servers := map[string]server{}
	for name, entry := range entries {
		fields, twice, ok := members(entry)
		s, err := readServer(zedsOlder(fields))
		switch {
		case !ok:
			s = server{Wrong: `it must be an object, such as {"command": "node", "args": ["server.js"]}`}
		case err != nil:
			s = server{Wrong: err.Error()}
		}
		s.Twice, s.Doubled = twice, slices.Contains(doubled, name)
		servers[name] = s
	}
	return servers, nil
}

// zedsOlder are the fields of a server whose command is an object with the path, the
// args and the env, as in Zed's older settings.
func zedsOlder(fields map[string]hujson.Value) map[string]hujson.Value {
	command, _, _ := members(fields["command"])
	if command["path"].Value == nil {
		return fields
	}
	fields = maps.Clone(fields)
	maps.Copy(fields, command)
	fields["command"] = command["path"]
	delete(fields, "path")
	return fields
}

func readServer(fields map[string]hujson.Value) (s server, err error) {
	for key, into := range map[string]*string{"command": &s.Command, "cwd": &s.Cwd, "url": &s.URL, "envFile": &s.EnvFile} {
		if !decode(fields[key], into) {
			return s, fmt.Errorf("%q must be a text", key)
		}
	}
	enabled := true
	for key, into := range map[string]*bool{"disabled": &s.Disabled, "enabled": &enabled} {
		if !decode(fields[key], into) {
			return s, fmt.Errorf("%q must be true or false", key)
		}
	}
	s.Disabled = s.Disabled || !enabled
	if s.Args, err = readArgs(fields["args"]); err != nil {
		return s, err
	}
	env, _, ok := members(fields["env"])
	if fields["env"].Value != nil && !ok {
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

func readArgs(v hujson.Value) (args []string, err error) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		list = &hujson.Array{}
		ok = decode(v, new([]string)) // nothing, or null
	}
	for _, item := range list.Elements {
		word, is := item.Value.(hujson.Literal)
		ok = ok && is && word.Kind() != 'n'
		args = append(args, word.String()) // a number, true and false as they are written
	}
	if !ok {
		return nil, errors.New(`"args" must be a list of texts`)
	}
	return args, nil
}

// decode says whether a value fits; null, and one that is absent, change nothing.
func decode(v hujson.Value, into any) bool {
	return v.Value == nil || json.Unmarshal(v.Pack(), into) == nil
}

// members are those of an object by their names, and the names that stand twice: of
// those the last counts, as to JSON. null has none.
func members(v hujson.Value) (fields map[string]hujson.Value, twice []string, ok bool) {
	fields = map[string]hujson.Value{}
	switch value := v.Value.(type) {
	case hujson.Literal:
		return fields, nil, value.Kind() == 'n'
	case *hujson.Object:
		for _, m := range value.Members {
			name := m.Name.Value.(hujson.Literal).String()
			if _, again := fields[name]; again && !slices.Contains(twice, name) {
				twice = append(twice, name)
			}
			fields[name] = m.Value
		}
		return fields, twice, true
	}
	return fields, nil, false
}
