package host

import (
	"cmp"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Claims are what a tool says of itself, in words. A hint of false says something, too, where
// MCP clients take an absent one for true.
func Claims(a *pluginv1.Annotations, exclusive bool) (list []string) {
	a = cmp.Or(a, &pluginv1.Annotations{})
	for _, c := range []struct {
		name string
		hint *bool
		says bool
	}{
		{"read-only", a.ReadOnly, true},
		{"idempotent", a.Idempotent, true},
		{"destructive", a.Destructive, true},
		{"additive", a.Destructive, false},
		{"open-world", a.OpenWorld, true},
		{"closed-world", a.OpenWorld, false},
		{"exclusive", &exclusive, true},
	} {
		if c.hint != nil && *c.hint == c.says {
			list = append(list, c.name)
		}
	}
	return list
}
