package mcpclients

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"
)

// remote are the keys of a server over HTTP, as one client or another has them.
var remote = []string{"url", "serverUrl", "headers", "http_headers", "env_http_headers", "bearer_token", "bearer_token_env_var", "oauth_resource"}

// contradicts says whether an entry with this key would not start its command: it is a
// server over HTTP, or switched off.
func contradicts(key string, value any) bool {
	switch key {
	case "type":
		return value != "stdio"
	case "disabled":
		return value == true
	case "enabled":
		return value == false
	}
	return slices.Contains(remote, key)
}

// uncontradicted takes out of an entry what contradicts the new one. Comments
// around that stay.
func uncontradicted(o *hujson.Object) {
	for n := len(o.Members) - 1; n >= 0; n-- {
		key, _ := o.Members[n].Name.Value.(hujson.Literal)
		raw := o.Members[n].Value.Clone()
		raw.Standardize()
		var value any
		_ = json.Unmarshal(raw.Pack(), &value) // fails on 1e999
		if contradicts(key.String(), value) {
			remove(o, n)
		}
	}
}

func remove(o *hujson.Object, n int) {
	m := o.Members[n]
	o.Members = slices.Delete(o.Members, n, n+1)
	if n < len(o.Members) {
		next := &o.Members[n].Name
		next.BeforeExtra = joined(m.Name.BeforeExtra, next.BeforeExtra)
		return
	}
	o.AfterExtra = joined(m.Name.BeforeExtra, o.AfterExtra)
	if n == 0 {
		return
	}
	last := &o.Members[n-1].Value
	if m.Value.AfterExtra != nil { // a comma behind the last one, also from now on
		last.AfterExtra = append(hujson.Extra{}, last.AfterExtra...)
		return
	}
	if len(bytes.TrimSpace(last.AfterExtra)) > 0 {
		o.AfterExtra = append(bytes.Clone(last.AfterExtra), o.AfterExtra...)
	}
	last.AfterExtra = nil
}

// joined is what stands before a member when the one before it is taken out.
func joined(before, next hujson.Extra) hujson.Extra {
	if len(bytes.TrimSpace(before)) == 0 {
		return next
	}
	if rest := bytes.TrimLeft(next, " \t\r"); bytes.HasPrefix(rest, []byte("\n")) {
		return append(bytes.TrimRight(before, " \t\r\n"), next...)
	}
	return append(bytes.Clone(before), bytes.TrimLeft(next, " \t\r\n")...)
}
